package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// LocalURL is the BaseURL to use with [HandlerTransport].
const LocalURL = "http://localhost"

// HandlerTransport carries requests to a handler in this process, streaming
// its answer. A response's body must be closed, as always; closing it early
// ends the request's context and waits for the handler.
func HandlerTransport(h http.Handler) http.RoundTripper { return handlerTransport{h} }

type handlerTransport struct{ h http.Handler }

// RoundTrip implements http.RoundTripper.
func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RequestURI = r.URL.RequestURI()
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, pipe := io.Pipe()
	w := &pipeWriter{header: http.Header{}, pipe: pipe, started: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = pipe.CloseWithError(serve(t.h, w, in))
		w.WriteHeader(http.StatusOK) // a handler that said nothing
	}()
	<-w.started
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, ContentLength: -1, Request: r,
		Body: &localBody{PipeReader: body, cancel: cancel, done: done},
	}, nil
}

// serve runs a handler; a panic is the answer breaking off, as in net/http.
func serve(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() { _ = r.Body.Close() }()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the request's handler failed: %v", p)
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// pipeWriter is the handler's side.
type pipeWriter struct {
	header, sent http.Header
	status       int
	pipe         *io.PipeWriter
	started      chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.sent = status, w.header.Clone()
		close(w.started)
	}
}

func (w *pipeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush implements http.Flusher: what is written is out already.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

// localBody is the caller's side.
type localBody struct {
	*io.PipeReader
	cancel context.CancelFunc
	done   chan struct{}
}

var errClosed = errors.New("the answer was closed")

// Close ends the handler and waits for it.
func (b *localBody) Close() error {
	b.cancel()
	_ = b.CloseWithError(errClosed) // always nil
	<-b.done
	return nil
}

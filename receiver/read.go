package receiver

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

const (
	// maxHeaders is how large a request's headers may be, together.
	maxHeaders = 64 << 10
	// firstRead bounds the memory that a mere Content-Length can ask for.
	firstRead = 64 << 10
)

// read takes the whole body and undoes its Content-Encoding.
func (rc *Receiver) read(d *delivery, w http.ResponseWriter) *rejection {
	r := d.request
	if headerSize(r.Header) > maxHeaders {
		return headersLarge.because(fmt.Sprintf("at most %d bytes", maxHeaders), nil)
	}
	encoding, rejected := contentEncoding(r.Header)
	if rejected != nil {
		return rejected
	}
	limit := rc.cfg.MaxBody
	if r.ContentLength > limit {
		return tooLarge(limit)
	}
	body, err := readAll(http.MaxBytesReader(w, r.Body, limit), r.ContentLength)
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		return tooLarge(limit)
	case err != nil:
		return unreadable.because("the body ended early", err)
	}
	d.body = body
	if encoding == "gzip" {
		d.wire = body
		return d.unzip(limit)
	}
	return nil
}

func tooLarge(limit int64) *rejection {
	return bodyTooLarge.because(fmt.Sprintf("at most %d bytes", limit), nil)
}

// contentEncoding is "gzip", or "" for a body that is sent as it is.
func contentEncoding(h http.Header) (string, *rejection) {
	values := h["Content-Encoding"]
	if len(values) == 0 {
		return "", nil
	}
	if len(values) == 1 {
		switch strings.ToLower(strings.TrimSpace(values[0])) {
		case "", "identity":
			return "", nil
		case "gzip", "x-gzip":
			return "gzip", nil
		}
	}
	return "", badEncoding.because("send the body as it is, or with gzip", nil)
}

// readAll reads to the end; size is what is expected, -1 if nothing is known.
func readAll(r io.Reader, size int64) ([]byte, error) {
	if size < 0 {
		size = 512
	}
	// One byte more lets the end be seen without growing.
	buf := make([]byte, 0, min(size, firstRead)+1)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), 2*cap(buf))
			copy(grown, buf)
			buf = grown
		}
	}
}

var unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// unzip replaces the body by what it was compressed from, at most limit bytes.
func (d *delivery) unzip(limit int64) *rejection {
	z := unzippers.Get().(*gzip.Reader)
	defer unzippers.Put(z)
	if err := z.Reset(bytes.NewReader(d.body)); err != nil {
		return unreadable.because("the body is not gzip, as Content-Encoding says", err)
	}
	plain, err := readAll(io.LimitReader(z, limit+1), -1)
	if err != nil {
		return unreadable.because("the gzip body is damaged", err)
	}
	if int64(len(plain)) > limit {
		return tooLarge(limit)
	}
	d.body = plain
	return nil
}

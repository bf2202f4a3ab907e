package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce/internal/inbox"
)

const (
	typeJSON    = "application/json"
	typeProblem = "application/problem+json"
	typeNDJSON  = "application/x-ndjson"
)

// Problem is an error answer of the API (RFC 9457), and the error that a
// [Client] returns for it.
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
}

func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return fmt.Sprintf("the admin API answered %d %s", p.Status, p.Title)
}

// Is makes a 404 an [inbox.ErrNotFound].
func (p *Problem) Is(target error) bool {
	return target == inbox.ErrNotFound && p.Status == http.StatusNotFound
}

func problem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", typeProblem)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{Title: http.StatusText(status), Status: status, Detail: detail})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", typeJSON)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error is the caller gone
}

// fail answers with what an error of the inbox means.
func (s *Service) fail(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case errors.Is(err, inbox.ErrNotFound):
		problem(w, http.StatusNotFound, err.Error())
	case errors.Is(err, inbox.ErrCursor):
		problem(w, http.StatusBadRequest, "after: "+err.Error())
	case r.Context().Err() != nil:
		problem(w, http.StatusServiceUnavailable, "the request was given up")
	default:
		s.o.Logger.Error("admin request failed", "path", r.URL.Path, "err", err)
		problem(w, http.StatusServiceUnavailable, "the inbox database did not answer: "+err.Error())
	}
}

// plainErrors turns the router's own text answers (404, 405) into problems.
func plainErrors(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern != "" {
			mux.ServeHTTP(w, r)
			return
		}
		rec := &routerAnswer{header: w.Header()}
		mux.ServeHTTP(rec, r)
		if rec.status < http.StatusBadRequest { // a redirect to the clean path
			w.WriteHeader(rec.status)
			return
		}
		detail := "there is nothing at " + r.URL.Path
		if rec.status == http.StatusMethodNotAllowed {
			detail = r.URL.Path + " takes " + strings.ReplaceAll(w.Header().Get("Allow"), ", HEAD", "")
		}
		problem(w, rec.status, detail)
	})
}

// routerAnswer keeps the status and headers of an answer, and drops its text.
type routerAnswer struct {
	header http.Header
	status int
}

func (a *routerAnswer) Header() http.Header         { return a.header }
func (a *routerAnswer) Write(p []byte) (int, error) { return len(p), nil }
func (a *routerAnswer) WriteHeader(status int)      { a.status = status }

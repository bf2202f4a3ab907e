package receiver

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/hookonce/hookonce"
)

// write sends a success answer.
func (r reply) write(w http.ResponseWriter) {
	h := w.Header()
	if r.key.ID != "" {
		h["Hookonce-Key"] = []string{r.key.Escaped()}
	}
	if r.items != nil {
		h["Hookonce-Items"] = []string{fmt.Sprintf("new=%d, duplicate=%d, filtered=%d, parked=%d",
			r.items[accepted], r.items[duplicate], r.items[filtered], r.items[parked])}
	}
	if r.replayed {
		h["Idempotent-Replayed"] = []string{"true"}
	}
	if r.answer.Body != "" {
		h["Content-Type"] = []string{contentType(r.answer.Body)}
	}
	if r.contentType != "" {
		h["Content-Type"] = []string{r.contentType}
	}
	w.WriteHeader(r.answer.Status)
	if r.answer.Body != "" {
		// The sender may be gone; the event is safe all the same.
		_, _ = w.Write([]byte(r.answer.Body))
	}
}

// contentType tells by its first character what an answer's body is, so that
// the stored answer of a duplicate looks like the first one.
func contentType(body string) string {
	switch body[0] {
	case '{', '[':
		return "application/json"
	case '<':
		return "text/xml; charset=utf-8"
	default:
		return "text/plain; charset=utf-8"
	}
}

// write sends an error answer (RFC 9457).
func (r *rejection) write(w http.ResponseWriter) {
	body, _ := json.Marshal(struct {
		Type   string `json:"type"`
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail,omitempty"`
	}{"urn:hookonce:problem:" + r.name, r.title, r.status, r.detail}) // texts and a number: cannot fail
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if r.retryAfter != "" {
		h.Set("Retry-After", r.retryAfter)
	}
	if r.problem == bodyTooLarge {
		h.Set("Connection", "close") // the rest of the body is not worth reading
	}
	w.WriteHeader(r.status)
	_, _ = w.Write(body)
}

// stored is the answer for a duplicate: the first delivery's, or the source's
// own where the store kept none that can be sent.
func stored(first, own hookonce.Answer) hookonce.Answer {
	if !success(first.Status) || first.Body != "" && !bodyAllowed(first.Status) {
		return own
	}
	return first
}

package receiver

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/telemetry"
)

// outcome is what became of a request, as metrics and logs name it.
type outcome uint8

const (
	accepted outcome = iota
	duplicate
	filtered
	handshake
	parked
	rejectedSignature
	rejectedInvalid
	shed
	unavailable
	outcomes // how many there are
)

var outcomeNames = [outcomes]string{
	"accepted", "duplicate", "filtered", "handshake", "parked", "rejected_signature", "rejected_invalid", "shed", "unavailable",
}

func (o outcome) String() string { return outcomeNames[o] }

// problem is one way to accept nothing. This table is the only place where an
// outcome gets its status.
type problem struct {
	status  int
	outcome outcome
	name    string // end of the problem's type
	title   string
	// retryAfter, in seconds, asks the sender to come again.
	retryAfter string
}

var (
	badSignature  = &problem{http.StatusUnauthorized, rejectedSignature, "signature", "Signature not accepted", ""}
	wrongToken    = &problem{http.StatusForbidden, rejectedSignature, "handshake", "Handshake not accepted", ""}
	wrongAddress  = &problem{http.StatusForbidden, rejectedSignature, "address", "Address not allowed", ""}
	unreadable    = &problem{http.StatusBadRequest, rejectedInvalid, "unreadable", "Request not readable", ""}
	noKey         = &problem{http.StatusBadRequest, rejectedInvalid, "no-key", "No idempotency key", ""}
	invalid       = &problem{http.StatusBadRequest, rejectedInvalid, "schema", "Body does not match the schema", ""}
	tooManyItems  = &problem{http.StatusRequestEntityTooLarge, rejectedInvalid, "too-many-items", "Too many events in one request", ""}
	keyTooLong    = &problem{http.StatusBadRequest, rejectedInvalid, "key-too-long", "Idempotency key too long", ""}
	typeTooLong   = &problem{http.StatusBadRequest, rejectedInvalid, "type-too-long", "Event type too long", ""}
	refused       = &problem{http.StatusBadRequest, rejectedInvalid, "refused", "Event cannot be stored", ""}
	headersLarge  = &problem{http.StatusRequestHeaderFieldsTooLarge, rejectedInvalid, "headers-too-large", "Headers too large", ""}
	bodyTooLarge  = &problem{http.StatusRequestEntityTooLarge, rejectedInvalid, "body-too-large", "Body too large", ""}
	badEncoding   = &problem{http.StatusUnsupportedMediaType, rejectedInvalid, "content-encoding", "Content-Encoding not supported", ""}
	changedBody   = &problem{http.StatusUnprocessableEntity, rejectedInvalid, "changed-body", "Key known with another body", ""}
	overloaded    = &problem{http.StatusServiceUnavailable, shed, "overloaded", "Too many requests", "1"}
	outboxFull    = &problem{http.StatusServiceUnavailable, unavailable, "outbox-full", "Event buffer full", "10"}
	storeDown     = &problem{http.StatusServiceUnavailable, unavailable, "unavailable", "Event could not be recorded", "5"}
	notConfirmed  = &problem{http.StatusServiceUnavailable, unavailable, "unconfirmed", "Event not confirmed yet", "5"}
	misconfigured = &problem{http.StatusServiceUnavailable, unavailable, "unavailable", "Event could not be verified", "60"}

	unknownPath = &problem{http.StatusNotFound, outcomes, "unknown-source", "No such source", ""}
	wrongMethod = &problem{http.StatusMethodNotAllowed, outcomes, "method", "Only POST is allowed", ""}
	internal    = &problem{http.StatusInternalServerError, outcomes, "internal", "Internal error", ""}
)

// rejection is a problem met by one request.
type rejection struct {
	*problem
	detail string // for the sender: holds nothing secret
	err    error  // for the log; may be nil
}

func (p *problem) because(detail string, err error) *rejection {
	return &rejection{problem: p, detail: detail, err: err}
}

// success tells whether senders take a status as accepted.
func success(status int) bool { return status >= 200 && status <= 299 }

// bodyAllowed tells whether an answer of this status may have a body.
func bodyAllowed(status int) bool {
	return status != http.StatusNoContent && status != http.StatusResetContent
}

// sourceMetrics are one source's collectors, looked up once.
type sourceMetrics struct {
	deliveries [outcomes]prometheus.Counter
	seconds    prometheus.Observer
	oldSecret  prometheus.Counter
}

func newSourceMetrics(m *telemetry.Metrics, source string) sourceMetrics {
	s := sourceMetrics{seconds: m.Receive.WithLabelValues(source), oldSecret: m.OldSecret.WithLabelValues(source)}
	for o := range outcomes {
		s.deliveries[o] = m.Deliveries.WithLabelValues(source, o.String())
	}
	return s
}

// note counts a request, or, of one that was split, its items.
func (s *sourceMetrics) note(r *reply, took time.Duration) {
	if r.items == nil {
		s.deliveries[r.outcome].Inc()
	} else {
		for o, n := range r.items {
			s.deliveries[o].Add(float64(n))
		}
	}
	s.seconds.Observe(took.Seconds())
}

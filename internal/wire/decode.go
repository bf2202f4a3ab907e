package wire

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// ErrIdentity says that a message does not tell which event it carries, so
// that it could not be told from another one.
var ErrIdentity = errors.New("message has no usable identity")

// Decode reads a message. The error, which wraps [ErrIdentity], concerns the
// key alone: the delivery then has no key but everything else that could be
// read, and always the body. Every other header that is missing or broken
// takes its zero value. ReceivedAt falls back to the timestamp property and is
// zero when there is none: the caller knows the time.
func Decode(m Message) (Delivery, error) {
	key, err := decodeKey(m)
	d := Delivery{Event: hookonce.Event{
		Key:         key,
		Type:        text(m.Headers[HeaderType]),
		ContentType: m.ContentType,
		Body:        m.Body,
		Header:      decodeHeaders(text(m.Headers[HeaderHeaders])),
		Context:     decodeContext(text(m.Headers[HeaderContext])),
		ReceivedAt:  instant(m.Headers[HeaderReceivedAt]),
		Unmatched:   text(m.Headers[HeaderUnmatched]),
		Parked:      text(m.Headers[HeaderParked]),
		TraceParent: text(m.Headers[HeaderTrace]),
	}}
	if d.Type == "" {
		d.Type = m.Type
	}
	if d.Type == "" {
		d.Type = "unknown"
	}
	if d.ReceivedAt.IsZero() {
		d.ReceivedAt = m.Timestamp
	}
	d.Attempt = count(m.Headers[HeaderAttempt])
	d.Due = instant(m.Headers[HeaderDue])
	d.UnmatchedSince = instant(m.Headers[HeaderSince])
	d.Generation = count(m.Headers[HeaderGeneration])
	d.Run = count(m.Headers[HeaderRun])
	d.Rerouted = truthy(m.Headers[HeaderRerouted])
	if dead := m.Headers[HeaderDead]; truthy(dead) {
		d.DeadCopy = true
		if reason := text(dead); reason != "true" && reason != "1" {
			d.Reason = reason
		}
	}
	return d, err
}

// decodeKey finds the key: the header first, as it is in full, then the
// message id, which is all that foreign messages have.
func decodeKey(m Message) (hookonce.Key, error) {
	full, source := text(m.Headers[HeaderKey]), text(m.Headers[HeaderSource])
	var key hookonce.Key
	switch {
	case full != "" && source != "":
		id, ok := strings.CutPrefix(full, source+"/")
		if !ok {
			return key, fmt.Errorf("%w: headers %s and %s contradict each other", ErrIdentity, HeaderKey, HeaderSource)
		}
		key = hookonce.Key{Source: source, ID: id}
	case full != "":
		key.Source, key.ID, _ = strings.Cut(full, "/")
	case m.MessageID == "":
		return key, fmt.Errorf("%w: set message_id or the header %s", ErrIdentity, HeaderKey)
	case source != "":
		// Our own id begins with the source; a foreign publisher's does not.
		key = hookonce.Key{Source: source, ID: strings.TrimPrefix(m.MessageID, source+"/")}
	default:
		key = hookonce.Key{Source: ForeignSource, ID: m.MessageID}
	}
	switch {
	case key.Source == "" || key.ID == "":
		return hookonce.Key{}, fmt.Errorf("%w: %s is not <source>/<key>", ErrIdentity, HeaderKey)
	case strings.Contains(key.Source, "/"):
		return hookonce.Key{}, fmt.Errorf("%w: header %s has a slash", ErrIdentity, HeaderSource)
	case len(key.ID) > hookonce.MaxKey:
		return hookonce.Key{}, fmt.Errorf("%w: key of %d bytes, at most %d", ErrIdentity, len(key.ID), hookonce.MaxKey)
	}
	return key, nil
}

// instant reads a time from the forms in which brokers and tools carry one.
func instant(v any) time.Time {
	switch v := v.(type) {
	case time.Time:
		return v
	case string, []byte:
		t, err := time.Parse(time.RFC3339Nano, text(v))
		if err != nil {
			return time.Time{}
		}
		return t
	}
	return time.Time{}
}

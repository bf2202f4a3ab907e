// Package wire turns events into messages and back. It knows the names of the
// headers and how to read them from what other software wrote; it knows no
// broker library.
//
// [Encode] and [Decode] are each other's inverse for everything that
// [Delivery] holds. Decode also takes messages that something else published,
// as long as they have a message id: their source is then "-".
package wire

import (
	"time"

	"github.com/hookonce/hookonce"
)

// AppID is the app_id property of every message sent.
const AppID = "hookonce"

// ForeignSource is the source of messages that name none.
const ForeignSource = "-"

// Header names. Values are strings, but for the counters (attempt, generation,
// run, rerouted), which are 64-bit integers.
const (
	HeaderKey        = "hookonce-key"             // full key, raw bytes
	HeaderSource     = "hookonce-source"          // the source's name
	HeaderType       = "hookonce-type"            // full type, before it was escaped
	HeaderReceivedAt = "hookonce-received-at"     // RFC 3339 with nanoseconds, UTC
	HeaderAttempt    = "hookonce-attempt"         // last attempt made; 0 at first
	HeaderDue        = "hookonce-due"             // RFC 3339 with nanoseconds; absent: now
	HeaderGeneration = "hookonce-generation"      // replays so far
	HeaderRun        = "hookonce-run"             // forced runs so far; absent: 0
	HeaderContext    = "hookonce-context"         // JSON object of a split item's parents
	HeaderHeaders    = "hookonce-headers"         // JSON object of the kept request headers
	HeaderUnmatched  = "hookonce-unmatched"       // "drop"
	HeaderSince      = "hookonce-unmatched-since" // when a group first met it and matched it with no pattern
	HeaderParked     = "hookonce-parked"          // why the receiver set the item aside
	HeaderRerouted   = "hookonce-rerouted"        // 1: published to the exchange a second time
	HeaderDead       = "hookonce-dead"            // on .dead copies: the reason, or "true"
	HeaderTrace      = "traceparent"              // W3C trace context
)

// Message is a message as brokers carry it, without a broker library's types.
type Message struct {
	MessageID, Type, AppID, ContentType string
	// Timestamp is when the event was received, in whole seconds on the wire.
	Timestamp time.Time
	Headers   map[string]any
	Body      []byte
}

// maxText bounds the texts that come from outside, in bytes, so that the headers
// together always fit the one frame they travel in.
const maxText = 4 << 10

// Encode writes a delivery as a message. The message shares d's body. Of the
// request headers at most [MaxHeaders] bytes are sent, see [CapHeaders]; a type
// over 4 KiB travels in its escaped form only, a longer reason is cut, and a
// context over [MaxContext] bytes, which no receiver makes, is left out.
func Encode(d Delivery) Message {
	h := map[string]any{
		HeaderKey:        d.Key.String(),
		HeaderSource:     d.Key.Source,
		HeaderAttempt:    int64(d.Attempt),
		HeaderGeneration: int64(d.Generation),
	}
	if len(d.Type) <= maxText {
		setText(h, HeaderType, d.Type)
	}
	setTime(h, HeaderReceivedAt, d.ReceivedAt)
	setTime(h, HeaderDue, d.Due)
	if d.Run != 0 {
		h[HeaderRun] = int64(d.Run)
	}
	if len(d.Context) <= MaxContext {
		setText(h, HeaderContext, string(d.Context))
	}
	setText(h, HeaderHeaders, encodeHeaders(d.Header))
	setText(h, HeaderUnmatched, d.Unmatched)
	setTime(h, HeaderSince, d.UnmatchedSince)
	setText(h, HeaderParked, cut(d.Parked))
	if d.Rerouted {
		h[HeaderRerouted] = int64(1)
	}
	if d.DeadCopy {
		h[HeaderDead] = "true"
		setText(h, HeaderDead, cut(d.Reason))
	}
	setText(h, HeaderTrace, shortString(d.TraceParent))
	return Message{
		MessageID:   d.Key.MessageID(),
		Type:        hookonce.EscapeType(d.Type),
		AppID:       AppID,
		ContentType: shortString(d.ContentType),
		Timestamp:   d.ReceivedAt,
		Headers:     h,
		Body:        d.Body,
	}
}

func setText(h map[string]any, name, value string) {
	if value != "" {
		h[name] = value
	}
}

func cut(s string) string { return s[:min(len(s), maxText)] }

func setTime(h map[string]any, name string, t time.Time) {
	if !t.IsZero() {
		h[name] = t.UTC().Format(time.RFC3339Nano)
	}
}

// shortString drops what AMQP could not carry as a short string.
func shortString(s string) string {
	if len(s) > hookonce.MaxMessageID {
		return ""
	}
	return s
}

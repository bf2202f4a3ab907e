package hookonce

import "time"

// Event is one business event of a provider, as the receiver accepted it. One
// request carries one event, or several where a provider batches them.
type Event struct {
	// Key identifies the event; it is the same on every redelivery.
	Key Key
	// Type is the provider's name for what happened ("order.paid"), in full.
	// Patterns match its escaped form, see [Event.Topic]. "unknown" when the
	// source names none.
	Type string
	// ContentType is the request's Content-Type; empty when it had none or one
	// of more than 255 bytes.
	ContentType string
	// Body is what was received, byte for byte: the whole request body, or the
	// raw bytes of one item of a batch.
	Body []byte
	// Header holds the request headers kept with the event, by canonical name,
	// several values joined with ", ". Signatures and credentials are never in it.
	Header map[string]string
	// Context is a JSON object of what the parents of a split item say; nil
	// otherwise. At most 8 KiB.
	Context []byte
	// ReceivedAt is when the first delivery was accepted.
	ReceivedAt time.Time
	// Unmatched is "drop" when the source wants an event that no consumer group
	// matches to be counted and forgotten; empty keeps it.
	Unmatched string
	// Parked, when not empty, is why the receiver set this item aside for a
	// person: it goes to the dead letters of group "-" and to no consumer.
	Parked string
	// TraceParent is the W3C trace context of the request; empty without one.
	TraceParent string
}

// Topic is what subscription patterns match: <source>.<type>, the type in its
// escaped form (see [EscapeType]).
func (e Event) Topic() string { return e.Key.Source + "." + EscapeType(e.Type) }

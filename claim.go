package hookonce

import (
	"crypto/rand"
	"time"
)

// Token names the owner of a claim or a lease. A claim repeated with the same
// token is the same try again; with another token it is a duplicate.
type Token [16]byte

// NewToken makes a random token.
func NewToken() Token {
	var t Token
	_, _ = rand.Read(t[:]) // never fails since Go 1.24: it ends the process instead
	return t
}

// Answer is what the first accepted delivery was answered; every duplicate
// gets the same.
type Answer struct {
	// Status is the HTTP status code, 200 to 299.
	Status int
	// Body is the response body; may be empty.
	Body string
}

// Claim asks a store to take an event's key for its first delivery, together
// with an outbox entry, in one atomic step.
type Claim struct {
	Event Event
	// Lookup is the key that is claimed; nil means Event.Key. They differ for
	// keys made of the body's hash: the hash is claimed for a short window, and
	// the event's own key tells its window's first copy from the next one's.
	Lookup *Key
	// Previous are the keys that older recipes of the source give this delivery.
	// They are looked up and claimed together with the key: the claim is New
	// only if none of them is taken.
	Previous []Key
	// Token is this try's owner token. Repeat a claim whose answer was lost
	// with the same token: it is then New, never Duplicate.
	Token Token
	// Fingerprint is a digest of the request body, kept to notice a duplicate
	// with another body.
	Fingerprint [16]byte
	// Answer is given to later duplicates.
	Answer Answer
	// TTL is how long the key stays claimed.
	TTL time.Duration
}

// Claimed is the key to look up: Lookup, or the event's own.
func (c Claim) Claimed() Key {
	if c.Lookup != nil {
		return *c.Lookup
	}
	return c.Event.Key
}

// Outcome is what became of a claim.
type Outcome uint8

const (
	// New: the key was free; it is claimed and the event is in the outbox.
	New Outcome = iota + 1
	// Duplicate: another delivery claimed the key before; nothing was written.
	Duplicate
)

// Claimed is a store's answer to one claim.
type Claimed struct {
	Outcome Outcome
	// Entry is the outbox entry of a New claim; zero where the store delivers
	// to the consumers itself (embedded queue).
	Entry EntryID
	// Key is the key of the first delivery's event.
	Key Key
	// First, FirstSeen and Fingerprint are what the first delivery left.
	First       Answer
	FirstSeen   time.Time
	Fingerprint [16]byte
	// Err, when not nil, concerns this item alone: it wraps [ErrInvalid] when
	// the store refuses the item's data, [ErrUnknown] when its state could not
	// be told. Outcome is then zero.
	Err error
}

// EntryID names an outbox entry within a store; ids of one instance ascend in
// the order of its claims.
type EntryID struct{ Hi, Lo uint64 }

// Entry is an event in the outbox: claimed, and not yet known to be published.
type Entry struct {
	ID    EntryID
	Event Event
}

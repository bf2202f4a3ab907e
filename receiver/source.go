package receiver

import (
	"time"

	"github.com/hookonce/hookonce/receiver/provider"
)

// The words of a [Source]'s choices.
const (
	wordReject  = "reject"
	wordPark    = "park"
	wordPublish = "publish"
	wordAccept  = "accept"
	wordKeep    = "keep"
	wordDrop    = "drop"
	wordClaim   = "claim"
	wordConfirm = "confirm"
	wordNone    = "none"
	wordKey     = "key"
)

// Source is one webhook endpoint. Zero fields take the preset's values or the
// defaults named here.
type Source struct {
	// Name is part of every key: letters, digits, "_" and "-", at most 64.
	Name string
	// Path is the exact URL path; /hooks/<name>.
	Path string
	// Provider is the preset's name, see package provider; generic.
	Provider string
	Verify   Verify
	// Secrets are all valid secrets. White space around one is refused, empty
	// ones are left out.
	Secrets []string
	// Expiring are secrets that are valid until their end: the old one while a
	// new one is rolled out. What they verify is counted.
	Expiring []provider.Secret
	// AllowIPs are the addresses and networks that may deliver; empty: all.
	// Behind a proxy, the sender's address is what Config.TrustedProxies say.
	AllowIPs []string
	// Keys are the alternatives of the key, recipes of which the first that is
	// present counts: "header:NAME", "json:PATH", "json:{a}:{b}", "query:NAME",
	// "form:NAME", "body". The preset's by default.
	Keys []string
	// PreviousKeys are recipes that made this source's keys before. What they give
	// is claimed together with the key, so that an event known under an older key
	// is a duplicate. Absent ones are skipped; "body" cannot be among them. Only
	// the store can tell then: OnStoreDown does not apply to such a delivery.
	PreviousKeys []string
	// Body tunes the key "body".
	Body BodyKey
	// Dedup is "key", or "none": every delivery is an event of its own, for
	// senders that say the same in the same words about different events. The
	// preset's by default, else "key".
	Dedup string
	// Type is where the event type comes from; the preset's rule.
	Type TypeRule
	// Respond is the success answer; the preset's, else 200 without a body.
	Respond Respond
	// Accept are topic patterns over the escaped type ("order.*"); other events
	// are answered with success and forgotten. Empty accepts all.
	Accept []string
	// Ignore are topic patterns of types that are answered with success and
	// forgotten, even when Accept has them.
	Ignore []string
	// Schema is a JSON Schema that each event's body must match; nil wants nothing.
	Schema []byte
	// OnInvalid is "reject" (400, default), or "park", for what does not match.
	// An invalid item of a batch is always parked: the others are not its fault.
	OnInvalid string
	// MaxItems is how many events one request may carry; 10000.
	MaxItems int
	// Retention is how long a key stays claimed; the preset's, else 45 days.
	Retention time.Duration
	// KeepHeaders are the request headers kept with the event; nil keeps all
	// but credentials and hop-by-hop headers, an empty list none. Credentials
	// and signatures are never kept.
	KeepHeaders []string
	// OnNoKey is "reject" (400), or "park": set aside for a person and answered
	// with success. "reject", unless the preset parks.
	OnNoKey string
	// Unmatched is "keep" (default) or "drop": what becomes of an event that no
	// consumer group wants.
	Unmatched string
	// OnStoreDown is "publish" (default) or "reject" (503). It is "reject" for
	// keys made of the body's hash, and with previous keys, in any case.
	OnStoreDown string
	// OnChangedBody is "accept" (default), which answers a duplicate whose body
	// differs like any other, or "reject" (422).
	OnChangedBody string
	// Ack is "claim" (default), or "confirm": answer after the broker's confirm.
	// A duplicate is then published again under its message id before it is
	// answered, as nothing here knows whether its first copy was confirmed; the
	// consumer's inbox removes it. Without a relay it is "claim".
	Ack string
}

// Verify is how deliveries prove themselves. With a Scheme that is not the
// preset's own, its verification is replaced; see [provider.Generic].
type Verify struct {
	Scheme, Header, Encoding, Prefix string
	// Signed is what is signed, Timestamp the header with its time.
	Signed, Timestamp string
	// Over is "decoded" (default), or "wire" for senders that sign the compressed
	// body.
	Over string
	// SecretEncoding is how secrets are written: text, hex or base64.
	SecretEncoding string
	// Tolerance is how far a signed timestamp may be from now, both ways; the
	// preset's, else 5 minutes.
	Tolerance time.Duration
	// Keys are public keys of the provider, KeysURL where it publishes them.
	Keys    []string
	KeysURL string
	// ID is who is meant: PayPal's webhook id, Woovi's company id.
	ID string
	// Token is what a handshake has to name: Meta's verify token.
	Token string
}

// BodyKey tunes the key alternative "body".
type BodyKey struct {
	// Canonical hashes the JSON document instead of its bytes: member order,
	// white space and escapes do not matter, numbers count as written. A body
	// that is no JSON is hashed as it is.
	Canonical bool
	// Ignore are the paths left out of a canonical document.
	Ignore []string
	// Window is how long an equal body is a duplicate, counted from the first
	// copy; 10 minutes.
	Window time.Duration
}

// TypeRule is where the event type comes from.
type TypeRule struct {
	// From is a recipe as in Source.Keys, or "=" and a constant type.
	From string
	// Map gives own names to the values found; others stay as they are.
	Map map[string]string
}

// Respond is the success answer: a status of 200 to 299, and a body, sent as
// JSON, XML or plain text by its first character.
type Respond struct {
	Status int
	Body   string
}

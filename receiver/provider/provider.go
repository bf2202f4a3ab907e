// Package provider knows the senders of webhooks: how each signs its
// deliveries, what its stable event id is, and how it wants to be answered.
//
// A provider is data, a [Preset], and where needed a few functions. To add
// one, write a file with a function that returns its Preset and name it in
// [All]; nothing else changes.
//
// Signatures are verified over the body after a gzip Content-Encoding was
// undone ("signed: decoded"), and compared in constant time. Errors tell
// [ErrMissing], [ErrMismatch] and [ErrConfig] apart for the log; they hold no
// secret and no signature. The sender never learns which it was.
package provider

import (
	"errors"
	"net/http"
	"time"
)

var (
	// ErrMissing says that a request carries no signature at all.
	ErrMissing = errors.New("signature missing")
	// ErrMismatch says that a request's signature is malformed, too old, made
	// too far in the future, or not made with one of the secrets.
	ErrMismatch = errors.New("signature does not match")
	// ErrConfig says that the settings cannot verify anything.
	ErrConfig = errors.New("verification misconfigured")
)

// Request is a delivery as a [Verifier] sees it. Verifiers do not change it.
type Request struct {
	// Method and Target are the first line of the request, the target as received.
	Method, Target string
	// PublicURL is the configured address in front of Target, without a slash
	// at its end; empty when there is none.
	PublicURL string
	// Host is the Host header; TLS tells whether the connection was encrypted.
	Host string
	TLS  bool
	// Header are the request's headers.
	Header http.Header
	// Body is the whole body, decoded.
	Body []byte
	// Now is when the request arrived.
	Now time.Time
}

// URL is the address that the sender called: the public URL and the target, or,
// without one, what scheme, Host and target say. Nothing is encoded anew, and
// no forwarded header is believed.
func (r *Request) URL() string {
	switch {
	case r.PublicURL != "":
		return r.PublicURL + r.Target
	case r.TLS:
		return "https://" + r.Host + r.Target
	default:
		return "http://" + r.Host + r.Target
	}
}

// Verifier decides whether a request comes from the provider. It is used by
// many requests at once.
type Verifier interface {
	// Verify returns nil, or an error that wraps [ErrMissing], [ErrMismatch] or
	// [ErrConfig].
	Verify(r *Request) error
	// Credentials are the request headers that prove a delivery. They are
	// never kept with the event.
	Credentials() []string
}

// DefaultTolerance is how far a signed timestamp may be from now, on both sides.
const DefaultTolerance = 5 * time.Minute

// Settings configure a verifier.
type Settings struct {
	// Scheme, Header, Encoding and Prefix are for the provider "generic"; see [Generic].
	Scheme, Header, Encoding, Prefix string
	// Tolerance bounds the age of signed timestamps; it must be above zero
	// where the scheme has one. See [DefaultTolerance].
	Tolerance time.Duration
	// Secrets are all valid secrets; one that matches is enough. Empty ones are
	// left out, white space around one is refused.
	Secrets []string
}

// Preset is what Hookonce knows of one provider. Recipes are in the language
// of sources' key and type settings.
type Preset struct {
	// Name is the value of provider: in the configuration.
	Name string
	// Title is the provider's own name.
	Title string
	// Confidence is how well the facts are founded: high (official source and
	// vectors), medium or low.
	Confidence string
	// Docs is where the provider describes its webhooks; empty for generic.
	Docs string
	// Verifier makes the verifier; its errors wrap [ErrConfig].
	Verifier func(Settings) (Verifier, error)
	// Keys are the alternatives of the key, best first.
	Keys []string
	// Type is the recipe of the event type.
	Type string
	// Status and Body are the success answer; 0 is 200.
	Status int
	Body   string
	// Retention is how long a delivery can come again; 0 is 45 days.
	Retention time.Duration
	// ParkNoKey parks what has no key, because the sender gives up on a 4xx.
	ParkNoKey bool
}

// All are the presets, ordered by name after generic.
func All() []Preset {
	return []Preset{generic(), stripe()}
}

// Lookup finds a preset by name.
func Lookup(name string) (Preset, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

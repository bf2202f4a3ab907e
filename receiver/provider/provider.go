// Package provider knows the senders of webhooks: how each signs its
// deliveries, what its stable event id is, how it batches, what it asks before
// it delivers, and how it wants to be answered.
//
// A provider is data, a [Preset], and where needed a few functions. To add
// one, write a file with a function that returns its Preset, name it in
// [All], and put its vectors into testdata/vectors.json; nothing else changes.
//
// Signatures are verified over the body after a gzip Content-Encoding was
// undone ("signed: decoded"), and compared in constant time. Errors tell
// [ErrMissing], [ErrMismatch] and [ErrConfig] apart for the log; they hold no
// secret and no signature. The sender never learns which it was.
package provider

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
)

var (
	// ErrMissing says that a request carries no signature at all.
	ErrMissing = errors.New("signature missing")
	// ErrMismatch says that a request's signature is malformed, too old, made
	// too far in the future, or not made with one of the secrets.
	ErrMismatch = errors.New("signature does not match")
	// ErrConfig says that nothing can be verified: the settings are wrong, all
	// secrets have expired, or the provider's keys cannot be had. The sender
	// shall come again.
	ErrConfig = errors.New("verification misconfigured")
	// ErrShape says that a body is not built as the provider builds batches.
	ErrShape = errors.New("unexpected shape")
	// ErrTooMany says that a batch has more items than are taken at once.
	ErrTooMany = errors.New("too many items in one request")
)

// Request is a delivery as presets see it.
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
	// Body is the whole body, decoded; Wire what came over the wire, when that
	// was compressed.
	Body, Wire []byte
	// Now is when the request arrived.
	Now time.Time

	// A verifier sets these and changes nothing else.

	// Old says that a secret with an end has verified the request.
	Old bool
	// Plain is what an encrypted body holds; it becomes the event's body.
	Plain []byte
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

// ItemVerifier is a [Verifier] of a sender that signs each item of a batch. Its
// Verify accepts a request of which one item is genuine.
type ItemVerifier interface {
	Verifier
	// VerifyItem checks one item, as the preset's Split returned it.
	VerifyItem(r *Request, raw []byte) error
}

// DefaultTolerance is how far a signed timestamp may be from now, on both sides.
const DefaultTolerance = 5 * time.Minute

// Secret is a secret with an end: the old one while a new one is rolled out.
type Secret struct {
	Value   string
	Expires time.Time
}

// Settings configure a verifier.
type Settings struct {
	// Scheme is a scheme of [Generic], or one of the preset's own
	// (Preset.Schemes); empty is the preset's first.
	Scheme string
	// Header is where the signature or the static secret stands.
	Header string
	// Encoding, Prefix, Signed, Timestamp and SecretEncoding are for the schemes
	// of [Generic].
	Encoding, Prefix, Signed, Timestamp, SecretEncoding string
	// Tolerance bounds the age of signed timestamps; it must be above zero
	// where the scheme has one. Zero is the preset's, see Preset.Tolerance.
	Tolerance time.Duration
	// Secrets are all valid secrets; one that matches is enough. Empty ones are
	// left out, white space around one is refused. Where a provider signs with a
	// private key of its own, its public keys stand here.
	Secrets []string
	// Expiring are valid until their end.
	Expiring []Secret
	// Keys are public keys, for a preset that needs secrets as well.
	Keys []string
	// KeysURL is where a provider publishes its keys; the preset's by default.
	KeysURL string
	// ID is who is meant: PayPal's webhook id, Woovi's company id.
	ID string
	// Token is what a handshake has to name.
	Token string
	// Over is "wire" for senders that sign the compressed body; "decoded" or ""
	// is what is in it.
	Over string
	// Client fetches keys; nil is one with short time limits.
	Client *http.Client
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
	// Verifies says in one line how deliveries prove themselves; Secrets what to
	// put under secrets; Trap what looks like a key and is none, and whatever
	// else goes wrong with this provider.
	Verifies, Secrets, Trap string

	// Schemes are the preset's own values of verify.scheme, the first its default;
	// nil when there is only one way.
	Schemes []string
	// Verifier makes the verifier; its errors wrap [ErrConfig].
	Verifier func(Settings) (Verifier, error)
	// Tolerance is for signed timestamps; 0 is [DefaultTolerance].
	Tolerance time.Duration
	// Takes are the parts of verify: that the preset's own verification reads,
	// beside scheme and tolerance: header, keys, keys_url, id, token.
	Takes []string
	// NoSecrets: deliveries are verified without a secret of the user's.
	NoSecrets bool

	// Keys are the alternatives of the key, best first.
	Keys []string
	// NoDedup: every delivery is an event of its own, because the provider says
	// the same thing in the same words about different events.
	NoDedup bool
	// FreshBody: the body differs on each attempt, so that its hash is no key.
	FreshBody bool
	// BodyWindow is how long an equal body is a repeat, where the key "body"
	// stands in for an id; 0 is 10 minutes.
	BodyWindow time.Duration
	// Volatile are parts of the request that look like a key and are none, as
	// recipes, and why.
	Volatile map[string]string
	// Guard remembers what is signed where the key is not.
	Guard Guard
	// Types are the alternatives of the event type, "=" before a constant.
	Types []string
	// Created, Entity and Version are recipes: when it happened, what it is
	// about, and what tells a newer state of that from an older one.
	Created, Entity, Version string
	// FormJSON is the form field that holds the JSON document when the provider
	// sends a form.
	FormJSON string
	// Split takes a batch apart: its items, and true; or false when the body is
	// one event, whose context may then be the only item. More than limit items
	// are refused with [ErrTooMany].
	Split func(body []byte, limit int) ([]Item, bool, error)
	// Batches: one request may carry several events.
	Batches bool
	// Probe answers what the provider asks without a signature, Handshake what
	// it asks with one. Neither leaves a trace. false: it is a delivery.
	Probe, Handshake func(*Request, Settings) (Reply, bool)
	// Methods are what a Probe is asked with beside POST.
	Methods []string

	// MaxBody is how large bodies of the provider may be; 0: nothing is known.
	MaxBody int64

	// Status and Body are the success answer; 0 is 200.
	Status int
	Body   string
	// Retention is how long a delivery can come again; 0 is 45 days.
	Retention time.Duration
	// ParkNoKey parks what has no key, because the sender gives up on a 4xx.
	ParkNoKey bool

	// Sample makes deliveries for `hookonce send`.
	Sample Sample
}

// Item is one event of a batch.
type Item struct {
	// Raw are its bytes, part of the request's body.
	Raw []byte
	// Context is a JSON object of what its parents say.
	Context []byte
	// Named items have an id of their own, or are broken: the key "body" is not
	// for them.
	Named bool
}

// Reply is the answer to a handshake.
type Reply struct {
	hookonce.Answer
	// ContentType is by default what the body's first character says.
	ContentType string
}

// Guard is a second look at a delivery whose key is not covered by its
// signature: what is covered takes effect once. The zero Guard guards nothing.
type Guard struct {
	// Recipe is what must not come twice: "body" for its hash, or a recipe.
	Recipe string
	// Window bounds the time; 0 is as long as the key is kept.
	Window time.Duration
	// Reject refuses the same signature with another body. Otherwise what
	// comes a second time is a duplicate of the first.
	Reject bool
}

// all are every secret, those with an end last.
func (s Settings) all() []Secret {
	list := make([]Secret, 0, len(s.Secrets)+len(s.Expiring))
	for _, value := range s.Secrets {
		list = append(list, Secret{Value: value})
	}
	return append(list, s.Expiring...)
}

// presets is the list of [All], made once.
var presets = sync.OnceValue(func() []Preset {
	return []Preset{
		generic(), stripe(), pagarme(), stone(), whatsapp(), evolution(), ifood(), mercadopago(), asaas(), pagbank(),
		efi(), woovi(), hotmart(), standardWebhooks(), svix(), github(), shopify(), slack(), twilio(), adyen(), paypal(),
		square(), paddle(), sendgrid(), mailgun(), discord(), telegram(), zoom(), gitlab(), linear(), typeform(),
		woocommerce(), nuvemshop(), vtex(), mercadolivre(),
	}
})

// All are the presets, generic first. The list is shared: do not change it.
func All() []Preset { return presets() }

// Lookup finds a preset by name.
func Lookup(name string) (Preset, bool) {
	for _, p := range All() {
		if p.Name == name {
			return p, true
		}
	}
	return Preset{}, false
}

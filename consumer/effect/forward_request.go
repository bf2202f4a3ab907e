package effect

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
)

const (
	signatureHeader = "webhook-signature"
	// contextHeader, named among the headers to pass on, tells the target what
	// the parents of a batch's item say, as JSON.
	contextHeader = "Hookonce-Context"
)

// request is one POST of the event.
func (f *Forwarder) request(ctx context.Context, t consumer.Try) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url.String(), nil)
	if err != nil {
		return nil, errors.New("the request could not be made")
	}
	// A body that cannot be read again: net/http takes an Idempotency-Key for
	// leave to send a request twice, and each time must be a try that is counted.
	req.Body = io.NopCloser(bytes.NewReader(t.Event.Body))
	req.ContentLength = int64(len(t.Event.Body))

	h := req.Header
	for _, name := range f.Headers {
		if http.CanonicalHeaderKey(name) == contextHeader && len(t.Event.Context) > 0 {
			h.Set(contextHeader, asciiJSON(t.Event.Context))
			continue
		}
		if value, ok := t.Event.Header[http.CanonicalHeaderKey(name)]; ok && !control(value) {
			h.Set(name, value)
		}
	}
	if ct := t.Event.ContentType; ct != "" && !control(ct) {
		h.Set("Content-Type", ct)
	}
	key := headerKey(t.Key)
	h.Set("User-Agent", "hookonce")
	h.Set("Idempotency-Key", key)
	h.Set("Hookonce-Key", t.Event.Key.Escaped())
	h.Set("Hookonce-Attempt", strconv.Itoa(t.Attempt)+"/"+strconv.Itoa(t.MaxAttempts))
	if t.RetryIn > 0 {
		h.Set("Hookonce-Retry-In", strconv.FormatInt(int64((t.RetryIn+time.Second-1)/time.Second), 10))
	}
	if tp := t.Event.TraceParent; tp != "" && !control(tp) {
		h.Set("Traceparent", tp)
	}
	if len(f.keys) > 0 {
		sign(h, f.keys, strings.ReplaceAll(key, ".", "%2E"), f.Now(), t.Event.Body)
	}
	return req, nil
}

// asciiJSON writes a JSON document so that a header can hold it.
func asciiJSON(doc []byte) string {
	var b strings.Builder
	for _, r := range string(doc) {
		switch {
		case r < ' ':
			b.WriteByte(' ') // white space between values: strings have none
		case r < 0x7f:
			b.WriteRune(r)
		default:
			for _, u := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, u)
			}
		}
	}
	return b.String()
}

// headerKey is a downstream key for a header, and for a reader that compares
// bytes: what is not printable ASCII, white space and "%" is percent-escaped.
// Over the length of a downstream key it is cut and ends in a hash, as that is.
func headerKey(key string) string {
	const upper = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c <= ' ' || c >= 0x7f || c == '%' {
			b.Write([]byte{'%', upper[c>>4], upper[c&15]})
			continue
		}
		b.WriteByte(key[i])
	}
	if b.Len() <= hookonce.MaxMessageID {
		return b.String()
	}
	sum := sha256.Sum256([]byte(key))
	const tail = 1 + 2*sha256.Size
	return b.String()[:hookonce.MaxMessageID-tail] + "~" + hex.EncodeToString(sum[:])
}

// signingKey is a secret of Standard Webhooks, decoded.
type signingKey []byte

func parseSigningKey(secret string) (signingKey, error) {
	encoded, ok := strings.CutPrefix(secret, "whsec_")
	if !ok {
		return signingKey(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, errors.New("is not whsec_ and base64 behind it: copy it whole, or leave whsec_ out to use the text as it is")
	}
	return key, nil
}

// sign adds the three headers of Standard Webhooks, a signature for each key. An
// id must have no dots, as they separate what is signed.
func sign(h http.Header, keys []signingKey, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", timestamp)
	h.Set(signatureHeader, strings.Join(signatures, " "))
}

// ours are headers that the request brings itself, or that belong to one
// connection.
var ours = strings.Fields(`Host Content-Type Content-Length Transfer-Encoding Connection Keep-Alive Proxy-Connection Te Trailer
	Upgrade Expect Idempotency-Key X-Idempotency-Key User-Agent Traceparent Webhook-Id Webhook-Timestamp Webhook-Signature Authorization Cookie`)

// mayPass says why a header of that name is not passed on.
func mayPass(name string) string {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}):
		return strconv.Quote(name) + " is not a header's name"
	case slices.Contains(ours, canonical) || strings.HasPrefix(canonical, "Hookonce-") && canonical != contextHeader || strings.HasPrefix(canonical, "Proxy-"):
		return canonical + " is not passed on: the request has its own, or it would give a credential away; remove it"
	}
	return ""
}

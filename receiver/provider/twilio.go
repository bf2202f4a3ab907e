package provider

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"slices"
	"strings"
)

const twilioHeader = "X-Twilio-Signature"

func twilio() Preset {
	return Preset{
		Name: "twilio", Title: "Twilio", Confidence: "high",
		Docs: "https://www.twilio.com/docs/usage/webhooks/webhooks-security",
		Verifies: "X-Twilio-Signature (HMAC-SHA1 of the public URL and the sorted form fields, base64); for other bodies bodySHA256 in the URL. " +
			"Behind a proxy set receiver.public_url",
		Secrets: "the account's primary Auth Token",
		Trap: "MessageSid alone merges queued, sent, delivered and failed. The idempotency token's header is not signed. The answer's body is " +
			"executed as TwiML, so it is an empty <Response/>.",
		Verifier: newTwilio,
		Keys: []string{
			"header:I-Twilio-Idempotency-Token",
			"form:{AccountSid}:{MessageSid}:{MessageStatus}",
			"form:{AccountSid}:{MessageSid}:{SmsStatus}:sms",
			"form:{AccountSid}:{CallSid}:{CallStatus}:{SequenceNumber}",
			"form::{MessageSid}:{MessageStatus}",
		},
		Types:   []string{"form:message.{MessageStatus}", "form:message.{SmsStatus}", "form:call.{CallStatus}"},
		Created: "form:Timestamp",
		Body:    "<Response/>",
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body:   "AccountSid=AC1&MessageSid=SM{id}&MessageStatus=delivered&To=%2B15550000001",
			Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded", "I-Twilio-Idempotency-Token": "{id}"},
			Sign: func(d *Draft) {
				fields, _ := url.ParseQuery(string(d.Body))
				sum := d.hmac(sha1.New, d.URL.String()+twilioFields(fields))
				d.Header.Set(twilioHeader, base64.StdEncoding.EncodeToString(sum))
			},
		},
	}
}

func newTwilio(s Settings) (Verifier, error) {
	ring, err := newKeyring(s, hmacKey(sha1Hash))
	return &twilioVerifier{ring}, err
}

type twilioVerifier struct{ ring keyring }

func (v *twilioVerifier) Credentials() []string { return []string{twilioHeader} }

func (v *twilioVerifier) Verify(r *Request) error {
	text, err := single(r.Header, twilioHeader)
	if err != nil {
		return err
	}
	sig, err := fromBase64(text)
	if err != nil {
		return fmt.Errorf("%w: header %s is not base64", ErrMismatch, twilioHeader)
	}
	fields, err := twilioBody(r)
	if err != nil {
		return err
	}
	// Whether the port is part of what is signed differs from product to product.
	address := r.URL()
	for i, candidate := range []string{address, withPort(address), withoutPort(address)} {
		if i > 0 && candidate == address {
			continue
		}
		if err = v.ring.verify(r, candidate+fields, nil, sig); err == nil {
			return nil
		}
	}
	return err
}

// twilioBody is how the body is covered: as form fields in what is signed, or
// by its hash in the URL, which is. A body that is neither is not covered.
func twilioBody(r *Request) (string, error) {
	_, query, _ := strings.Cut(r.Target, "?")
	values, _ := url.ParseQuery(query)
	if sums := values["bodySHA256"]; len(sums) > 0 {
		want, err := fromHex(sums[0])
		got := sha256.Sum256(r.Body)
		if err != nil || len(sums) > 1 || subtle.ConstantTimeCompare(want, got[:]) != 1 {
			return "", fmt.Errorf("%w: bodySHA256 in the URL is not the body's hash", ErrMismatch)
		}
		return "", nil
	}
	if len(r.Body) == 0 {
		return "", nil
	}
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != "application/x-www-form-urlencoded" {
		return "", fmt.Errorf("%w: the body is neither a form nor covered by bodySHA256", ErrMismatch)
	}
	fields, err := url.ParseQuery(string(r.Body))
	if err != nil {
		return "", fmt.Errorf("%w: the form cannot be read", ErrMismatch)
	}
	return twilioFields(fields), nil
}

// twilioFields joins names and values, sorted by name, then by value. All values
// of a name count: one that does not could be added by anybody.
func twilioFields(fields url.Values) string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		values := slices.Sorted(slices.Values(fields[name]))
		for _, value := range values {
			b.WriteString(name)
			b.WriteString(value)
		}
	}
	return b.String()
}

// withPort and withoutPort change nothing but the port, and encode nothing anew.
func withPort(address string) string {
	scheme, host, rest := cutURL(address)
	if host == "" || strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
		return address
	}
	port := ":80"
	if scheme == "https" {
		port = ":443"
	}
	return scheme + "://" + host + port + rest
}

func withoutPort(address string) string {
	scheme, host, rest := cutURL(address)
	at := strings.LastIndexByte(host, ':')
	if at < 0 || at < strings.LastIndexByte(host, ']') {
		return address
	}
	return scheme + "://" + host[:at] + rest
}

func cutURL(address string) (scheme, host, rest string) {
	scheme, tail, ok := strings.Cut(address, "://")
	if !ok {
		return "", "", ""
	}
	end := strings.IndexAny(tail, "/?#")
	if end < 0 {
		end = len(tail)
	}
	return scheme, tail[:end], tail[end:]
}

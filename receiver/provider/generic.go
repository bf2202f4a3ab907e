package provider

import (
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The schemes of the provider "generic".
const (
	SchemeNone       = "none"
	SchemeHMACSHA256 = "hmac-sha256"
)

const (
	sha1Hash   = crypto.SHA1
	sha256Hash = crypto.SHA256
	sha512Hash = crypto.SHA512
)

// GenericSchemes are the values of verify.scheme that any source may use.
var GenericSchemes = []string{
	SchemeNone, SchemeHMACSHA256, "hmac-sha1", "hmac-sha512", "hmac",
	"rsa", "rsa-sha512", "ecdsa", "ed25519", "basic", "bearer", "static", "query",
}

// DefaultSignatureHeader carries a generic source's signature where no other
// is configured.
const DefaultSignatureHeader = "X-Signature"

func generic() Preset {
	return Preset{
		Name: "generic", Title: "Any sender", Confidence: "high",
		Verifies: "what verify: says: " + strings.Join(GenericSchemes, ", "),
		Secrets:  "what you share with the sender; its public key for rsa, ecdsa and ed25519; user:password for basic",
		Trap:     "choose a key that the sender repeats when it delivers again, and that no other event has",
		Verifier: Generic,
		Keys:     []string{"header:Idempotency-Key"},
		Sample: Sample{
			Source: "verify: { scheme: hmac-sha256, header: X-Signature, encoding: hex }\nsecrets: [ \"hookonce-test-secret\" ]\ntype: \"json:type\"",
			Secret: "hookonce-test-secret",
			Body:   `{"type":"order.paid","order_id":"{id}"}`,
			Header: map[string]string{"Idempotency-Key": "{id}"},
			Sign: func(d *Draft) {
				d.Header.Set(DefaultSignatureHeader, hex.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

// Generic makes the verifier of a sender without a preset, or one that
// replaces a preset's own. Settings.Scheme must be named:
//
//	none                     accepts everything, and takes no secrets
//	hmac-sha256, hmac-sha1,  HMAC of the body under the secret
//	hmac-sha512, hmac        (hmac is hmac-sha256)
//	rsa, rsa-sha512          RSASSA-PKCS1-v1_5 with SHA-256, SHA-512
//	ecdsa                    ECDSA with SHA-256, in DER
//	ed25519                  Ed25519
//	basic, bearer            the header Authorization
//	static                   the secret itself in Settings.Header
//	query                    the secret itself in the URL's parameter named by Settings.Header
//
// A signature stands in Settings.Header (default X-Signature), once, as "hex"
// (default; upper or lower case), "base64" (standard alphabet, padded) or
// "base64url". Settings.Prefix, such as "sha256=", must stand in front when set.
// Settings.SecretEncoding says how a secret's bytes are written: "" as they
// are, hex or base64.
//
// Settings.Signed is what is signed, a template with {body}, {timestamp},
// {url}, {method}, {path}, {header:NAME} and {query:NAME}; "{body}" by default,
// and then it ends the template. Settings.Timestamp names the header of
// {timestamp}, Unix seconds or milliseconds; it must then be part of what is
// signed, and is checked against Settings.Tolerance.
func Generic(s Settings) (Verifier, error) {
	switch s.Scheme {
	case SchemeNone:
		for _, secret := range s.all() {
			if secret.Value != "" {
				return nil, fmt.Errorf("%w: secrets are never used with scheme %q; remove them or set verify.scheme to %q",
					ErrConfig, SchemeNone, SchemeHMACSHA256)
			}
		}
		return open{}, nil
	case "rsa", "rsa-sha512", "ecdsa", "ed25519":
		s.Secrets = slices.Concat(s.Secrets, s.Keys)
	case "basic":
		return basic(s)
	case "bearer":
		return authorization("Bearer")(s)
	case "static":
		return headerSecret(DefaultSignatureHeader)(s)
	case "query":
		name := s.Header
		if name == "" {
			name = "token"
		}
		return querySecret(name)(s)
	case "":
		return nil, fmt.Errorf("%w: no scheme; set verify.scheme to %q, or to %q to accept anybody's requests",
			ErrConfig, SchemeHMACSHA256, SchemeNone)
	}
	if (s.Scheme == SchemeHMACSHA256 || s.Scheme == "hmac") && s.Signed+s.Timestamp+s.SecretEncoding == "" && s.Encoding != "base64url" {
		return newBodyMAC(s)
	}
	key, err := genericKey(s)
	if err != nil {
		return nil, err
	}
	return genericSigned(s, key)
}

// genericKey says how a secret of the scheme verifies.
func genericKey(s Settings) (func(string) (ringKey, error), error) {
	hashes := map[string]crypto.Hash{"hmac": sha256Hash, SchemeHMACSHA256: sha256Hash, "hmac-sha1": sha1Hash, "hmac-sha512": sha512Hash}
	switch s.Scheme {
	case "rsa":
		return publicKey(sha256Hash, "rsa"), nil
	case "rsa-sha512":
		return publicKey(sha512Hash, "rsa"), nil
	case "ecdsa":
		return publicKey(sha256Hash, "ecdsa"), nil
	case "ed25519":
		return publicKey(0, "ed25519"), nil
	}
	h, ok := hashes[s.Scheme]
	if !ok {
		return nil, fmt.Errorf("%w: unknown scheme %q; write one of %s", ErrConfig, s.Scheme, strings.Join(GenericSchemes, ", "))
	}
	switch s.SecretEncoding {
	case "", "text":
		return hmacKey(h), nil
	case "hex":
		return hmacKeyFrom(h, fromHex), nil
	case "base64":
		return hmacKeyFrom(h, fromBase64), nil
	default:
		return nil, fmt.Errorf("%w: unknown secret_encoding %q; write text, hex or base64", ErrConfig, s.SecretEncoding)
	}
}

func genericSigned(s Settings, key func(string) (ringKey, error)) (Verifier, error) {
	header := DefaultSignatureHeader
	if s.Header != "" {
		header = http.CanonicalHeaderKey(s.Header)
	}
	decode, err := decoderOf(s.Encoding)
	if err != nil {
		return nil, err
	}
	v := &signed{headers: []string{header}, prefix: s.Prefix, decode: decode}
	if v.ring, err = newKeyring(s, key); err != nil {
		return nil, err
	}
	if s.Timestamp != "" {
		v.stamps = []string{http.CanonicalHeaderKey(s.Timestamp)}
		if v.tolerance, err = s.timed(); err != nil {
			return nil, err
		}
	}
	t, err := parseSigned(s.Signed)
	switch {
	case err != nil:
		return nil, err
	case (s.Timestamp != "") != slices.ContainsFunc(t.parts, func(p signedPart) bool { return p.kind == "timestamp" }):
		return nil, fmt.Errorf("%w: verify.timestamp names a header that signed: covers as {timestamp}; both or neither", ErrConfig)
	}
	v.noBody = !t.body
	if len(t.parts) > 0 {
		v.content = t.content
	}
	return v, nil
}

// signedTemplate is what stands before the body in what is signed.
type signedTemplate struct {
	parts []signedPart
	body  bool
}

type signedPart struct{ literal, kind, name string }

// parseSigned reads a template; "" is the body alone.
func parseSigned(text string) (signedTemplate, error) {
	wrong := func(why string) (signedTemplate, error) {
		return signedTemplate{}, fmt.Errorf("%w: signed %q: %s", ErrConfig, text, why)
	}
	if text == "" {
		return signedTemplate{body: true}, nil
	}
	var t signedTemplate
	for rest := text; rest != ""; {
		if t.body {
			return wrong("nothing can stand behind {body}")
		}
		literal, after, found := strings.Cut(rest, "{")
		if strings.Contains(literal, "}") {
			return wrong("a } without {")
		}
		if !found {
			t.parts = append(t.parts, signedPart{literal: literal})
			break
		}
		inner, tail, closed := strings.Cut(after, "}")
		if !closed {
			return wrong("a { without }")
		}
		rest = tail
		kind, name, _ := strings.Cut(inner, ":")
		switch {
		case inner == "body":
			t.body = true
			if literal == "" {
				continue
			}
			kind = ""
		case slices.Contains([]string{"timestamp", "url", "method", "path"}, inner):
		case (kind == "header" || kind == "query") && name != "":
		default:
			return wrong("{" + inner + "} is not known; write {body}, {timestamp}, {url}, {method}, {path}, {header:NAME} or {query:NAME}")
		}
		t.parts = append(t.parts, signedPart{literal, kind, name})
	}
	return t, nil
}

func (t signedTemplate) content(r *Request, stamp string) (string, error) {
	var b strings.Builder
	path, query, _ := strings.Cut(r.Target, "?")
	for _, p := range t.parts {
		b.WriteString(p.literal)
		switch p.kind {
		case "timestamp":
			b.WriteString(stamp)
		case "url":
			b.WriteString(r.URL())
		case "method":
			b.WriteString(r.Method)
		case "path":
			b.WriteString(path)
		case "header":
			value, err := single(r.Header, http.CanonicalHeaderKey(p.name))
			if err != nil {
				return "", err
			}
			b.WriteString(value)
		case "query":
			values, err := url.ParseQuery(query)
			if got := values[p.name]; err != nil || len(got) != 1 {
				return "", fmt.Errorf("%w: parameter %s of the URL", ErrMissing, strconv.Quote(p.name))
			}
			b.WriteString(values.Get(p.name))
		}
	}
	return b.String(), nil
}

// open accepts every request.
type open struct{}

func (open) Verify(*Request) error { return nil }

func (open) Credentials() []string { return nil }

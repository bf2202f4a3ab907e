package provider

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// The schemes of the provider "generic".
const (
	SchemeNone       = "none"
	SchemeHMACSHA256 = "hmac-sha256"
)

// DefaultSignatureHeader carries a generic source's signature where no other
// is configured.
const DefaultSignatureHeader = "X-Signature"

func generic() Preset {
	return Preset{
		Name: "generic", Title: "Any sender", Confidence: "high",
		Verifier: Generic,
		Keys:     []string{"header:Idempotency-Key"},
	}
}

// Generic makes the verifier of a sender without a preset. Settings.Scheme must
// be named: "none" accepts everything and takes no secrets; "hmac-sha256" is
// the HMAC-SHA256 of the body under the secret's bytes in Settings.Header
// (default X-Signature), as "hex" (default; upper or lower case) or "base64"
// (standard alphabet, padded). Settings.Prefix, such as "sha256=", must stand
// in front when set. The header occurs once.
func Generic(s Settings) (Verifier, error) {
	switch s.Scheme {
	case SchemeNone:
		for _, secret := range s.Secrets {
			if secret != "" {
				return nil, fmt.Errorf("%w: secrets are never used with scheme %q; remove them or set verify.scheme to %q",
					ErrConfig, SchemeNone, SchemeHMACSHA256)
			}
		}
		return open{}, nil
	case SchemeHMACSHA256:
		return newBodyMAC(s)
	case "":
		return nil, fmt.Errorf("%w: no scheme; set verify.scheme to %q, or to %q to accept anybody's requests",
			ErrConfig, SchemeHMACSHA256, SchemeNone)
	default:
		return nil, fmt.Errorf("%w: unknown scheme %q; write %q or %q", ErrConfig, s.Scheme, SchemeHMACSHA256, SchemeNone)
	}
}

// open accepts every request.
type open struct{}

func (open) Verify(*Request) error { return nil }

func (open) Credentials() []string { return nil }

// bodyMAC verifies a MAC over the body alone.
type bodyMAC struct {
	header, prefix string
	decode         func(to *[sha256.Size]byte, text string) bool
	macs           []*mac
}

func newBodyMAC(s Settings) (*bodyMAC, error) {
	v := &bodyMAC{header: DefaultSignatureHeader, prefix: s.Prefix}
	if s.Header != "" {
		v.header = http.CanonicalHeaderKey(s.Header)
	}
	switch s.Encoding {
	case "", "hex":
		v.decode = decodeHex
	case "base64":
		v.decode = decodeBase64
	default:
		return nil, fmt.Errorf("%w: unknown encoding %q; write hex or base64", ErrConfig, s.Encoding)
	}
	var err error
	v.macs, err = macs(s.Secrets)
	return v, err
}

func (v *bodyMAC) Credentials() []string { return []string{v.header} }

func (v *bodyMAC) Verify(r *Request) error {
	values := r.Header[v.header]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return fmt.Errorf("%w: header %s", ErrMissing, v.header)
	case len(values) > 1:
		return fmt.Errorf("%w: header %s occurs %d times", ErrMismatch, v.header, len(values))
	}
	text, ok := strings.CutPrefix(values[0], v.prefix)
	if !ok {
		return fmt.Errorf("%w: header %s lacks the configured prefix", ErrMismatch, v.header)
	}
	var got [sha256.Size]byte
	if !v.decode(&got, text) {
		return fmt.Errorf("%w: header %s is not the MAC's encoding and length", ErrMismatch, v.header)
	}
	match := 0
	for _, m := range v.macs {
		want := m.sum("", r.Body)
		match |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	if match == 0 {
		return fmt.Errorf("%w: none of the secrets", ErrMismatch)
	}
	return nil
}

// decodeHex reads exactly one SHA-256 in hexadecimal.
func decodeHex(to *[sha256.Size]byte, text string) bool {
	if len(text) != 2*sha256.Size {
		return false
	}
	_, err := hex.Decode(to[:], []byte(text))
	return err == nil
}

// decodeBase64 reads exactly one SHA-256 in padded standard base64. The
// decoder would skip line ends; the exact length rules them out.
func decodeBase64(to *[sha256.Size]byte, text string) bool {
	const length = (sha256.Size + 2) / 3 * 4
	if len(text) != length {
		return false
	}
	var raw [length]byte
	n, err := base64.StdEncoding.Strict().Decode(raw[:], []byte(text))
	if err != nil || n != sha256.Size {
		return false
	}
	copy(to[:], raw[:n])
	return true
}

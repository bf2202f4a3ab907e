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

// bodyMAC verifies an HMAC-SHA256 over the body alone: the scheme of most
// senders, without the detours of [signed].
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
	v.macs, err = macs(s)
	return v, err
}

// bodyHMAC makes the verifier of a provider that signs the body alone.
func bodyHMAC(header, encoding, prefix string) func(Settings) (Verifier, error) {
	return func(s Settings) (Verifier, error) {
		s.Header, s.Encoding, s.Prefix = header, encoding, prefix
		return newBodyMAC(s)
	}
}

func (v *bodyMAC) Credentials() []string { return []string{v.header} }

func (v *bodyMAC) Verify(r *Request) error {
	value, err := single(r.Header, v.header)
	if err != nil {
		return err
	}
	text, ok := strings.CutPrefix(value, v.prefix)
	if !ok {
		return fmt.Errorf("%w: header %s lacks the configured prefix", ErrMismatch, v.header)
	}
	var got [sha256.Size]byte
	if !v.decode(&got, text) {
		return fmt.Errorf("%w: header %s is not the MAC's encoding and length", ErrMismatch, v.header)
	}
	match, left := false, false
	for _, m := range v.macs {
		if !active(m.expires, r.Now) {
			continue
		}
		left = true
		want := m.sum("", r.Body)
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			match, r.Old = true, !m.expires.IsZero()
		}
	}
	switch {
	case !left:
		return errExpired
	case !match:
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

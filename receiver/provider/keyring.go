package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rsa"
	_ "crypto/sha256" // links the hashes that schemes name
	_ "crypto/sha512"
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"
)

// maxSignatures is how many signatures of one request are looked at.
const maxSignatures = 16

// keyring are a source's keys; one that made one of the signatures is enough.
type keyring []ringKey

type ringKey struct {
	expires time.Time
	// made tells whether the key made one of the signatures over prefix and body.
	made func(prefix string, body []byte, sigs [][]byte) bool
}

// verify checks the signatures over prefix and body.
func (k keyring) verify(r *Request, prefix string, body []byte, sigs ...[]byte) error {
	if len(sigs) > maxSignatures {
		return fmt.Errorf("%w: %d signatures", ErrMismatch, len(sigs))
	}
	found, left := false, false
	for _, key := range k {
		if !active(key.expires, r.Now) {
			continue
		}
		left = true
		if key.made(prefix, body, sigs) {
			found, r.Old = true, !key.expires.IsZero()
		}
	}
	switch {
	case !left:
		return errExpired
	case !found:
		return fmt.Errorf("%w: none of the secrets", ErrMismatch)
	}
	return nil
}

// newKeyring makes a key of each secret.
func newKeyring(s Settings, make func(secret string) (ringKey, error)) (keyring, error) {
	var ring keyring
	err := eachSecret(s, func(value string, expires time.Time) error {
		key, err := make(value)
		key.expires = expires
		ring = append(ring, key)
		return err
	})
	return ring, err
}

// hmacKey makes HMACs under the secret's own bytes.
func hmacKey(h crypto.Hash) func(string) (ringKey, error) {
	return func(secret string) (ringKey, error) { return hmacOf(h, []byte(secret)), nil }
}

// hmacKeyFrom makes HMACs under what the secret encodes.
func hmacKeyFrom(h crypto.Hash, decode decoder) func(string) (ringKey, error) {
	return func(secret string) (ringKey, error) {
		raw, err := decode(secret)
		if err != nil || len(raw) == 0 {
			return ringKey{}, errors.New("is not encoded as the scheme wants it")
		}
		return hmacOf(h, raw), nil
	}
}

func hmacOf(h crypto.Hash, secret []byte) ringKey {
	if h == crypto.SHA256 {
		m := newMAC(secret)
		return ringKey{made: func(prefix string, body []byte, sigs [][]byte) bool {
			want := m.sum(prefix, body)
			return oneEqual(want[:], sigs)
		}}
	}
	return ringKey{made: func(prefix string, body []byte, sigs [][]byte) bool {
		m := hmac.New(h.New, secret)
		m.Write([]byte(prefix))
		m.Write(body)
		return oneEqual(m.Sum(nil), sigs)
	}}
}

func oneEqual(want []byte, sigs [][]byte) bool {
	match := 0
	for _, sig := range sigs {
		match |= subtle.ConstantTimeCompare(want, sig)
	}
	return match == 1
}

// publicKey makes a key of a public key as PEM or as the base64 of its DER.
// allowed names the kinds: "rsa", "ecdsa", "ed25519".
func publicKey(h crypto.Hash, allowed ...string) func(string) (ringKey, error) {
	return func(text string) (ringKey, error) {
		pub, err := parsePublicKey(text)
		if err != nil {
			return ringKey{}, err
		}
		kind := kindOf(pub)
		for _, a := range allowed {
			if a == kind {
				return ringOf(pub, h), nil
			}
		}
		return ringKey{}, fmt.Errorf("is a public key of the kind %q; wanted is %s", kind, strings.Join(allowed, " or "))
	}
}

func kindOf(pub crypto.PublicKey) string {
	switch pub.(type) {
	case *rsa.PublicKey:
		return "rsa"
	case *ecdsa.PublicKey:
		return "ecdsa"
	case ed25519.PublicKey:
		return "ed25519"
	default:
		return "unknown"
	}
}

// ringOf verifies RSASSA-PKCS1-v1_5, ECDSA in DER, and Ed25519.
func ringOf(pub crypto.PublicKey, h crypto.Hash) ringKey {
	return ringKey{made: func(prefix string, body []byte, sigs [][]byte) bool {
		var content []byte
		if key, ok := pub.(ed25519.PublicKey); ok {
			content = append([]byte(prefix), body...)
			for _, sig := range sigs {
				if len(sig) == ed25519.SignatureSize && ed25519.Verify(key, content, sig) {
					return true
				}
			}
			return false
		}
		d := h.New()
		d.Write([]byte(prefix))
		d.Write(body)
		content = d.Sum(nil)
		for _, sig := range sigs {
			switch key := pub.(type) {
			case *rsa.PublicKey:
				if rsa.VerifyPKCS1v15(key, h, content, sig) == nil {
					return true
				}
			case *ecdsa.PublicKey:
				if ecdsa.VerifyASN1(key, content, sig) {
					return true
				}
			}
		}
		return false
	}}
}

// minRSA is the shortest RSA key taken from settings and key lists; Woovi's
// production key has 1024 bits.
const minRSA = 1024

// parsePublicKey reads PEM (a key or a certificate), base64 of PEM or of DER, or
// an Ed25519 key of 32 bytes in hexadecimal.
func parsePublicKey(text string) (crypto.PublicKey, error) {
	errKey := errors.New("is no public key; write PEM, the base64 of its DER form, or 64 hexadecimal digits (Ed25519)")
	text = strings.TrimSpace(text)
	if raw, err := hex.DecodeString(text); err == nil && len(raw) == ed25519.PublicKeySize {
		return ed25519.PublicKey(raw), nil
	}
	der, err := base64.StdEncoding.DecodeString(text)
	if err == nil && strings.HasPrefix(string(der), "-----BEGIN ") {
		text, err = string(der), errKey
	}
	if err != nil {
		block, _ := pem.Decode([]byte(text))
		if block == nil {
			return nil, errKey
		}
		if block.Type == "CERTIFICATE" {
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, errKey
			}
			return strong(cert.PublicKey)
		}
		der = block.Bytes
	}
	if pub, err := x509.ParsePKIXPublicKey(der); err == nil {
		return strong(pub)
	}
	if pub, err := x509.ParsePKCS1PublicKey(der); err == nil {
		return strong(pub)
	}
	return nil, errKey
}

// meansKey tells whether a text is meant as a public key, be it a good one or
// not: it is then never taken for a shared secret.
func meansKey(text string) bool {
	return len(text) > 100 && (strings.HasPrefix(text, "-----BEGIN ") || strings.HasPrefix(text, "LS0tLS1CRUdJTi") ||
		strings.HasPrefix(text, "MII") || strings.HasPrefix(text, "MIG") || strings.HasPrefix(text, "MF"))
}

func strong(pub crypto.PublicKey) (crypto.PublicKey, error) {
	if key, ok := pub.(*rsa.PublicKey); ok && key.N.BitLen() < minRSA {
		return nil, fmt.Errorf("is an RSA key of %d bits; at least %d", key.N.BitLen(), minRSA)
	}
	if kindOf(pub) == "unknown" {
		return nil, errors.New("is a public key of another kind than RSA, ECDSA and Ed25519")
	}
	return pub, nil
}

// decoder reads a signature or a secret; exactly one text stands for each value.
type decoder func(string) ([]byte, error)

// fromHex reads upper and lower case.
func fromHex(text string) ([]byte, error) { return hex.DecodeString(text) }

// fromBase64 reads the standard alphabet, padded. The library would skip line
// ends: they are refused.
func fromBase64(text string) ([]byte, error) { return strictly(base64.StdEncoding, text) }

// fromBase64URL reads the URL alphabet, padded or not.
func fromBase64URL(text string) ([]byte, error) {
	return strictly(base64.RawURLEncoding, strings.TrimRight(text, "="))
}

func strictly(enc *base64.Encoding, text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, errors.New("line end")
	}
	return enc.Strict().DecodeString(text)
}

func decoderOf(name string) (decoder, error) {
	switch name {
	case "", "hex":
		return fromHex, nil
	case "base64":
		return fromBase64, nil
	case "base64url":
		return fromBase64URL, nil
	default:
		return nil, fmt.Errorf("%w: unknown encoding %q; write hex, base64 or base64url", ErrConfig, name)
	}
}

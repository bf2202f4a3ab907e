package provider

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// static verifies a secret that is sent as it is. It proves who sent, not what:
// the body is not covered.
type static struct {
	secrets []digest
	// read finds the secret; its error wraps ErrMissing or ErrMismatch.
	read   func(r *Request) (string, error)
	header string // "" when it stands elsewhere
}

// digest is a secret's hash: hashes have one length, so that comparing them
// does not tell the secret's.
type digest struct {
	sum     [sha256.Size]byte
	expires time.Time
}

func (v *static) Credentials() []string {
	if v.header == "" {
		return nil
	}
	return []string{v.header}
}

func (v *static) Verify(r *Request) error {
	text, err := v.read(r)
	if err != nil {
		return err
	}
	got := sha256.Sum256([]byte(text))
	match, left := false, false
	for _, s := range v.secrets {
		if !active(s.expires, r.Now) {
			continue
		}
		left = true
		if subtle.ConstantTimeCompare(got[:], s.sum[:]) == 1 {
			match, r.Old = true, !s.expires.IsZero()
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

func newStatic(s Settings, header string, read func(r *Request) (string, error)) (Verifier, error) {
	v := &static{read: read, header: header}
	err := eachSecret(s, func(value string, expires time.Time) error {
		v.secrets = append(v.secrets, digest{sha256.Sum256([]byte(value)), expires})
		return nil
	})
	return v, err
}

// headerSecret wants the secret in a header; Settings.Header wins.
func headerSecret(header string) func(Settings) (Verifier, error) {
	return func(s Settings) (Verifier, error) {
		name := header
		if s.Header != "" {
			name = http.CanonicalHeaderKey(s.Header)
		}
		return newStatic(s, name, func(r *Request) (string, error) {
			text, err := single(r.Header, name)
			return strings.TrimPrefix(text, s.Prefix), err
		})
	}
}

// querySecret wants the secret as a parameter of the URL.
func querySecret(name string) func(Settings) (Verifier, error) {
	return func(s Settings) (Verifier, error) {
		return newStatic(s, "", func(r *Request) (string, error) {
			_, query, _ := strings.Cut(r.Target, "?")
			values, err := url.ParseQuery(query)
			switch got := values[name]; {
			case err != nil:
				return "", fmt.Errorf("%w: the URL's parameters cannot be read", ErrMismatch)
			case len(got) == 0 || len(got) == 1 && got[0] == "":
				return "", fmt.Errorf("%w: parameter %s", ErrMissing, name)
			case len(got) > 1:
				return "", fmt.Errorf("%w: parameter %s occurs %d times", ErrMismatch, name, len(got))
			default:
				return got[0], nil
			}
		})
	}
}

// authorization wants "Authorization: <scheme> …".
func authorization(scheme string) func(Settings) (Verifier, error) {
	return func(s Settings) (Verifier, error) {
		return newStatic(s, "Authorization", func(r *Request) (string, error) {
			text, err := single(r.Header, "Authorization")
			if err != nil {
				return "", err
			}
			got, rest, _ := strings.Cut(text, " ")
			if !strings.EqualFold(got, scheme) {
				return "", fmt.Errorf("%w: Authorization is not %s", ErrMismatch, scheme)
			}
			rest = strings.TrimSpace(rest)
			if scheme != "Basic" {
				return rest, nil
			}
			raw, err := base64.StdEncoding.DecodeString(rest)
			if err != nil {
				return "", fmt.Errorf("%w: Authorization is not base64", ErrMismatch)
			}
			return string(raw), nil
		})
	}
}

// basic wants HTTP Basic; a secret is "user:password".
func basic(s Settings) (Verifier, error) {
	if err := eachSecret(s, func(value string, _ time.Time) error {
		if !strings.Contains(value, ":") {
			return fmt.Errorf("is not written as user:password")
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return authorization("Basic")(s)
}

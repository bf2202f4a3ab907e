package provider

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// signed verifies a signature in a header.
type signed struct {
	ring keyring
	// headers are the names under which the signature may come, and the
	// timestamp's beside it; the first that is there counts.
	headers []string
	stamps  []string // as long as headers; nil: no timestamp
	// list parts several signatures; "" when there is one.
	list   string
	prefix string // before each signature
	decode decoder
	// tolerance bounds the timestamp; 0: it is not looked at.
	tolerance time.Duration
	// content is what is signed before the body; nil is nothing.
	content func(r *Request, stamp string) (string, error)
	noBody  bool // the body is not signed
}

func (v *signed) Credentials() []string { return v.headers }

func (v *signed) Verify(r *Request) error {
	at := present(r.Header, v.headers)
	text, err := single(r.Header, v.headers[at])
	if err != nil {
		return err
	}
	stamp := ""
	if v.stamps != nil {
		if stamp, err = single(r.Header, v.stamps[at]); err != nil {
			return err
		}
		if v.tolerance > 0 {
			if err := freshEither(stamp, r.Now, v.tolerance); err != nil {
				return err
			}
		}
	}
	sigs, err := v.signatures(text)
	if err != nil {
		return err
	}
	prefix, body := "", r.Body
	if v.content != nil {
		if prefix, err = v.content(r, stamp); err != nil {
			return err
		}
	}
	if v.noBody {
		body = nil
	}
	return v.ring.verify(r, prefix, body, sigs...)
}

// signatures reads the header's value: entries of other schemes and malformed
// ones do not spoil the others.
func (v *signed) signatures(text string) ([][]byte, error) {
	entries := []string{text}
	if v.list != "" {
		entries = strings.Split(text, v.list)
	}
	var sigs [][]byte
	for _, entry := range entries {
		if v.list != "" {
			entry = strings.TrimSpace(entry)
		}
		value, ok := strings.CutPrefix(entry, v.prefix)
		if !ok || value == "" {
			continue
		}
		if sig, err := v.decode(value); err == nil && len(sig) > 0 {
			sigs = append(sigs, sig)
		}
	}
	if len(sigs) == 0 {
		return nil, fmt.Errorf("%w: no signature of this scheme", ErrMismatch)
	}
	return sigs, nil
}

// present is which of the names has a value; the first when none has.
func present(h http.Header, names []string) int {
	for i, name := range names {
		if len(h[name]) > 0 {
			return i
		}
	}
	return 0
}

// single is the value of a header that must be there, once.
func single(h http.Header, name string) (string, error) {
	values := h[name]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", fmt.Errorf("%w: header %s", ErrMissing, name)
	case len(values) > 1:
		return "", fmt.Errorf("%w: header %s occurs %d times", ErrMismatch, name, len(values))
	}
	return values[0], nil
}

// timed is the tolerance of a scheme with timestamps.
func (s Settings) timed() (time.Duration, error) {
	if s.Tolerance <= 0 {
		return 0, fmt.Errorf("%w: the tolerance of signed timestamps must be above zero; leave it out for the default", ErrConfig)
	}
	return s.Tolerance, nil
}

// freshEither is [fresh] for a timestamp that may be in milliseconds: one of
// 13 digits is.
func freshEither(stamp string, now time.Time, tolerance time.Duration) error {
	if len(stamp) >= 13 {
		if _, err := strconv.ParseUint(stamp, 10, 62); err != nil {
			return fmt.Errorf("%w: the timestamp is not a number", ErrMismatch)
		}
		stamp = stamp[:len(stamp)-3]
	}
	return fresh(stamp, now, tolerance)
}

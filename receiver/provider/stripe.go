package provider

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const stripeHeader = "Stripe-Signature"

func stripe() Preset {
	return Preset{
		Name: "stripe", Title: "Stripe", Confidence: "high",
		Docs:     "https://docs.stripe.com/webhooks",
		Verifies: "Stripe-Signature: t=…,v1=… (HMAC-SHA256 of t.body, hex); the timestamp within verify.tolerance",
		Secrets:  "the endpoint's signing secret, whsec_ included; the old and the new one while you roll it",
		Trap: "Stripe-Signature is made anew for each attempt: as a key it finds no duplicate at all. request.idempotency_key is shared by " +
			"several events. Two events may tell of one change: once_per on json:data.object.id. Connected accounts: ids are unique across " +
			"them, so account and livemode are no part of the key.",
		Verifier: Stripe,
		Volatile: map[string]string{"json:request.id": "is shared by all events of one API call", "json:request.idempotency_key": "is shared by all events of one API call", "json:pending_webhooks": "changes from attempt to attempt"},
		Keys:     []string{"json:id"},
		Types:    []string{"json:type"},
		Created:  "json:created", Entity: "json:data.object.id", Version: "json:created",
		Retention: 45 * 24 * time.Hour,
		Sample: Sample{
			Source: `secrets: [ "whsec_hookonce_test" ]`, Secret: "whsec_hookonce_test",
			Body: `{"id":"evt_{id}","object":"event","type":"payment_intent.succeeded","created":{seconds},"data":{"object":{"id":"pi_{id}"}}}`,
			Sign: func(d *Draft) {
				stamp := d.seconds()
				d.Header.Set(stripeHeader, "t="+stamp+",v1="+hex.EncodeToString(d.hmac(sha256.New, stamp+"."+string(d.Body))))
			},
		},
	}
}

// Stripe makes the verifier of Stripe's signatures. The HMAC key is the whole
// endpoint secret, "whsec_" included. Only v1 entries count; several may stand
// in the header while a secret is rolled. Timestamps are checked on both sides,
// and a tolerance of zero is refused: elsewhere it switches the check off.
func Stripe(s Settings) (Verifier, error) {
	if s.Tolerance <= 0 {
		return nil, fmt.Errorf("%w: the tolerance of signed timestamps must be above zero; leave it out for %s",
			ErrConfig, DefaultTolerance)
	}
	list, err := macs(s)
	if err != nil {
		return nil, err
	}
	return &stripeVerifier{tolerance: s.Tolerance, macs: list}, nil
}

type stripeVerifier struct {
	tolerance time.Duration
	macs      []*mac
}

func (v *stripeVerifier) Credentials() []string { return []string{stripeHeader} }

func (v *stripeVerifier) Verify(r *Request) error {
	values := r.Header[stripeHeader]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return fmt.Errorf("%w: header %s", ErrMissing, stripeHeader)
	case len(values) > 1:
		return fmt.Errorf("%w: header %s occurs %d times", ErrMismatch, stripeHeader, len(values))
	}
	var sigs [4][sha256.Size]byte
	stamp, list, err := parseStripe(values[0], sigs[:0])
	if err != nil {
		return err
	}
	if err := fresh(stamp, r.Now, v.tolerance); err != nil {
		return err
	}
	match, left := 0, false
	prefix := stamp + "."
	for _, m := range v.macs {
		if !active(m.expires, r.Now) {
			continue
		}
		left = true
		want := m.sum(prefix, r.Body)
		for i := range list {
			if equal := subtle.ConstantTimeCompare(list[i][:], want[:]); equal == 1 {
				match = 1
				r.Old = !m.expires.IsZero()
			}
		}
	}
	if !left {
		return errExpired
	}
	if match == 0 {
		return fmt.Errorf("%w: none of the secrets made any of the v1 signatures", ErrMismatch)
	}
	return nil
}

// parseStripe reads "t=<unix seconds>,v1=<hex>[,v1=<hex>]…", appending the v1
// signatures to list. Entries that are malformed or of other schemes, such as
// v0, are passed over; a second timestamp is refused, as it would be unclear
// which was signed.
func parseStripe(header string, list [][sha256.Size]byte) (string, [][sha256.Size]byte, error) {
	stamp := ""
	for entry := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(entry), "=")
		switch name {
		case "t":
			if stamp != "" {
				return "", nil, fmt.Errorf("%w: two timestamps", ErrMismatch)
			}
			stamp = value
		case "v1":
			var sig [sha256.Size]byte
			if decodeHex(&sig, value) {
				list = append(list, sig)
			}
		}
	}
	switch {
	case stamp == "":
		return "", nil, fmt.Errorf("%w: no timestamp", ErrMismatch)
	case len(list) == 0:
		return "", nil, fmt.Errorf("%w: no v1 signature", ErrMismatch)
	}
	return stamp, list, nil
}

// fresh checks a timestamp in Unix seconds, digits only, against now.
func fresh(stamp string, now time.Time, tolerance time.Duration) error {
	seconds, err := strconv.ParseUint(stamp, 10, 62)
	if err != nil {
		return fmt.Errorf("%w: the timestamp is not a number of seconds", ErrMismatch)
	}
	age := now.Sub(time.Unix(int64(seconds), 0))
	switch {
	case age > tolerance:
		return fmt.Errorf("%w: signed longer than %s ago", ErrMismatch, tolerance)
	case age < -tolerance:
		return fmt.Errorf("%w: signed more than %s in the future; check the clock", ErrMismatch, tolerance)
	}
	return nil
}

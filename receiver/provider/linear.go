package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

func linear() Preset {
	return Preset{
		Name: "linear", Title: "Linear", Confidence: "medium",
		Docs:     "https://linear.app/developers/webhooks",
		Verifies: "Linear-Signature (HMAC-SHA256 of the body, hex); webhookTimestamp in the body within verify.tolerance (1 minute)",
		Secrets:  "the signing secret of the webhook",
		Trap: "webhookTimestamp is the time of sending: the body differs on each attempt, and its hash is no key. webhookId names the webhook. " +
			"Linear-Delivery is not signed: who has seen a delivery could send it again under another id, so that its hash is remembered for a day.",
		Tolerance: time.Minute,
		Verifier:  newLinear,
		Volatile:  map[string]string{"json:webhookTimestamp": "is the time of sending", "json:webhookId": "names the webhook, not the event"},
		Keys:      []string{"header:Linear-Delivery"},
		FreshBody: true,
		Guard:     Guard{Recipe: "body", Window: 24 * time.Hour},
		Types:     []string{"json:{type}.{action}", "json:type"},
		Created:   "json:createdAt", Entity: "json:data.id", Version: "json:createdAt",
		Status: 200,
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body:   `{"action":"create","type":"Issue","createdAt":"{time}","data":{"id":"{id}"},"webhookTimestamp":{now_ms}}`,
			Header: map[string]string{"Linear-Delivery": "{id}", "Linear-Event": "Issue"},
			Sign: func(d *Draft) {
				d.Header.Set("Linear-Signature", hex.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

// linearVerifier looks at the time of sending after the signature, which covers it.
type linearVerifier struct {
	Verifier
	tolerance time.Duration
}

func newLinear(s Settings) (Verifier, error) {
	tolerance, err := s.timed()
	if err != nil {
		return nil, err
	}
	mac, err := bodyHMAC("Linear-Signature", "hex", "")(s)
	return &linearVerifier{mac, tolerance}, err
}

func (v *linearVerifier) Verify(r *Request) error {
	if err := v.Verifier.Verify(r); err != nil {
		return err
	}
	stamp := text(r.Body, "webhookTimestamp")
	if stamp == "" {
		return fmt.Errorf("%w: no webhookTimestamp in the body", ErrMismatch)
	}
	return freshEither(stamp, r.Now, v.tolerance)
}

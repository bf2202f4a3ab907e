package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

func mailgun() Preset {
	return Preset{
		Name: "mailgun", Title: "Mailgun", Confidence: "high",
		Docs:     "https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks",
		Verifies: "in the body, signature.signature (HMAC-SHA256 of timestamp and token, hex); the timestamp within verify.tolerance (1 day); the event itself is not signed",
		Secrets:  "the webhook signing key",
		Trap: "Who has seen one delivery could put other events behind its signature: a token is taken once, and with one body. The token is no " +
			"key, as it may be another one on a redelivery. 406 would end all redelivery.",
		Tolerance: 24 * time.Hour,
		Verifier:  newMailgun,
		Volatile:  map[string]string{"json:signature.token": "may be another one on a redelivery", "json:signature.timestamp": "is the time of signing", "json:signature.signature": "is a signature"},
		Keys:      []string{"json:event-data.id"},
		Guard:     Guard{Recipe: "json:signature.token", Reject: true},
		Types:     []string{"json:event-data.event"},
		Created:   "json:event-data.timestamp", Entity: "json:event-data.message.headers.message-id", Version: "json:event-data.timestamp",
		Status: 200,
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"signature":{"timestamp":"{now}","token":"{id}","signature":"{signature}"},"event-data":{"event":"delivered","id":"{id}","timestamp":{seconds}.5}}`,
			Sign: func(d *Draft) {
				sum := hex.EncodeToString(d.hmac(sha256.New, d.seconds()+d.ID))
				d.Body = []byte(strings.Replace(string(d.Body), "{signature}", sum, 1))
			},
		},
	}
}

func newMailgun(s Settings) (Verifier, error) {
	tolerance, err := s.timed()
	if err != nil {
		return nil, err
	}
	ring, err := newKeyring(s, hmacKey(sha256Hash))
	return &mailgunVerifier{ring, tolerance}, err
}

type mailgunVerifier struct {
	ring      keyring
	tolerance time.Duration
}

func (v *mailgunVerifier) Credentials() []string { return nil }

func (v *mailgunVerifier) Verify(r *Request) error {
	stamp, token := text(r.Body, "signature.timestamp"), text(r.Body, "signature.token")
	value := text(r.Body, "signature.signature")
	if stamp == "" || token == "" || value == "" {
		return fmt.Errorf("%w: signature in the body", ErrMissing)
	}
	sig, err := fromHex(value)
	if err != nil {
		return fmt.Errorf("%w: the signature is not hexadecimal", ErrMismatch)
	}
	// Time and token stand side by side in what is signed: their length is fixed,
	// or the border between them could be moved.
	if len(stamp) != 10 {
		return fmt.Errorf("%w: the timestamp is not 10 digits", ErrMismatch)
	}
	if err := fresh(stamp, r.Now, v.tolerance); err != nil {
		return err
	}
	return v.ring.verify(r, stamp+token, nil, sig)
}

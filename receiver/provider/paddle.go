package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

const paddleHeader = "Paddle-Signature"

func paddle() Preset {
	return Preset{
		Name: "paddle", Title: "Paddle Billing", Confidence: "high",
		Docs:     "https://developer.paddle.com/webhooks/signature-verification",
		Verifies: "Paddle-Signature: ts=…;h1=… (HMAC-SHA256 of ts:body, hex), one or several h1; the timestamp within verify.tolerance",
		Secrets:  "the endpoint's secret key pdl_ntfset_…, whole",
		Trap:     "notification_id names an event at one destination, and a replay has a new one: event_id is the key. The signature is made anew for each attempt.",
		Verifier: func(s Settings) (Verifier, error) {
			tolerance, err := s.timed()
			if err != nil {
				return nil, err
			}
			ring, err := newKeyring(s, hmacKey(sha256Hash))
			return &paddleVerifier{ring, tolerance}, err
		},
		Keys:    []string{"json:event_id"},
		Types:   []string{"json:event_type"},
		Created: "json:occurred_at", Entity: "json:data.id", Version: "json:occurred_at",
		Status: 200,
		Sample: Sample{
			Source: `secrets: [ "pdl_ntfset_hookonce_test" ]`, Secret: "pdl_ntfset_hookonce_test",
			Body: `{"event_id":"evt_{id}","event_type":"transaction.paid","occurred_at":"{time}","notification_id":"ntf_{id}","data":{"id":"txn_{id}"}}`,
			Sign: func(d *Draft) {
				d.Header.Set(paddleHeader, "ts="+d.seconds()+";h1="+hex.EncodeToString(d.hmac(sha256.New, d.seconds()+":"+string(d.Body))))
			},
		},
	}
}

type paddleVerifier struct {
	ring      keyring
	tolerance time.Duration
}

func (v *paddleVerifier) Credentials() []string { return []string{paddleHeader} }

func (v *paddleVerifier) Verify(r *Request) error {
	header, err := single(r.Header, paddleHeader)
	if err != nil {
		return err
	}
	stamp, sigs, err := stampAndSignatures(header, ";", "ts", "h1")
	if err != nil {
		return err
	}
	if err := fresh(stamp, r.Now, v.tolerance); err != nil {
		return err
	}
	return v.ring.verify(r, stamp+":", r.Body, sigs...)
}

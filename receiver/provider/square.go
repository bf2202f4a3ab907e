package provider

import (
	"crypto/sha256"
	"encoding/base64"
)

const squareHeader = "X-Square-Hmacsha256-Signature"

func square() Preset {
	return Preset{
		Name: "square", Title: "Square", Confidence: "high",
		Docs:     "https://developer.squareup.com/docs/webhooks/step3validate",
		Verifies: "x-square-hmacsha256-signature (HMAC-SHA256 of the registered URL and the body, base64). Behind a proxy set receiver.public_url",
		Secrets:  "the signature key of the subscription",
		Trap:     "the URL is signed as it is registered, to the letter; never write the body again before it is verified",
		Verifier: func(s Settings) (Verifier, error) {
			ring, err := newKeyring(s, hmacKey(sha256Hash))
			return &signed{
				ring: ring, headers: []string{squareHeader}, decode: fromBase64,
				content: func(r *Request, _ string) (string, error) { return r.URL(), nil },
			}, err
		},
		Keys:    []string{"json:{merchant_id}:{event_id}", "json:event_id"},
		Types:   []string{"json:type"},
		Created: "json:created_at", Entity: "json:data.id", Version: "json:created_at",
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"merchant_id":"M1","type":"payment.updated","event_id":"{id}","created_at":"{time}","data":{"type":"payment","id":"p-{id}"}}`,
			Sign: func(d *Draft) {
				d.Header.Set(squareHeader, base64.StdEncoding.EncodeToString(d.hmac(sha256.New, d.URL.String()+string(d.Body))))
			},
		},
	}
}

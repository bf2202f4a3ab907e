package provider

import (
	"crypto/sha256"
	"encoding/base64"
)

func typeform() Preset {
	return Preset{
		Name: "typeform", Title: "Typeform", Confidence: "low",
		Docs:     "https://www.typeform.com/developers/webhooks/secure-your-webhooks/",
		Verifies: "Typeform-Signature: sha256=… (HMAC-SHA256 of the body, base64)",
		Secrets:  "the secret of the webhook",
		Trap:     "the signature has GitHub's prefix and is base64, not hexadecimal",
		Verifier: bodyHMAC("Typeform-Signature", "base64", "sha256="),
		Keys:     []string{"json:event_id"},
		Types:    []string{"json:event_type"},
		Created:  "json:form_response.submitted_at", Entity: "json:form_response.token",
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"event_id":"{id}","event_type":"form_response","form_response":{"token":"t-{id}","submitted_at":"{time}"}}`,
			Sign: func(d *Draft) {
				d.Header.Set("Typeform-Signature", "sha256="+base64.StdEncoding.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

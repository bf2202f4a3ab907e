package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/hookonce/hookonce"
)

func github() Preset {
	return Preset{
		Name: "github", Title: "GitHub", Confidence: "high",
		Docs:     "https://docs.github.com/webhooks/using-webhooks/validating-webhook-deliveries",
		Verifies: "X-Hub-Signature-256: sha256=… (HMAC-SHA256 of the body, hex)",
		Secrets:  "the secret of the webhook",
		Trap: "X-GitHub-Delivery is not signed: who has seen a delivery could send it again under another id, so that the body's hash is " +
			"remembered for a day as well. GitHub never delivers again by itself; a redelivery by hand has the same id.",
		Verifier: bodyHMAC("X-Hub-Signature-256", "hex", "sha256="),
		Volatile: map[string]string{"header:X-Github-Hook-Id": "names the webhook, not the event"},
		Keys:     []string{"header:X-GitHub-Delivery"},
		Guard:    Guard{Recipe: "body", Window: 24 * time.Hour},
		Types:    []string{"header:{X-GitHub-Event}.{json:action}", "header:X-GitHub-Event"},
		FormJSON: "payload",
		Handshake: func(r *Request, _ Settings) (Reply, bool) {
			return Reply{Answer: hookonce.Answer{Status: 200}}, r.Header.Get("X-GitHub-Event") == "ping"
		},
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body:   `{"action":"opened","number":7,"pull_request":{"node_id":"PR_{id}"}}`,
			Header: map[string]string{"X-GitHub-Delivery": "{id}", "X-GitHub-Event": "pull_request"},
			Sign: func(d *Draft) {
				d.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

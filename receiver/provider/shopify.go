package provider

import (
	"crypto/sha256"
	"encoding/base64"
)

func shopify() Preset {
	return Preset{
		Name: "shopify", Title: "Shopify", Confidence: "medium",
		Docs:     "https://shopify.dev/docs/apps/build/webhooks/ignore-duplicates",
		Verifies: "X-Shopify-Hmac-Sha256 (HMAC-SHA256 of the body, base64), or the same without X-",
		Secrets:  "the app's client secret; webhooks made in the admin have one of their own",
		Trap: "X-Shopify-Webhook-Id is another one for each subscription to a topic: two subscriptions would be two events. The ids are not " +
			"signed; two topics may send the same body, so that its hash is no guard.",
		Verifier: func(s Settings) (Verifier, error) {
			ring, err := newKeyring(s, hmacKey(sha256Hash))
			return &signed{ring: ring, headers: []string{"Shopify-Hmac-Sha256", "X-Shopify-Hmac-Sha256"}, decode: fromBase64}, err
		},
		Keys: []string{
			"header:{X-Shopify-Shop-Domain}:{X-Shopify-Topic}:{X-Shopify-Event-Id}",
			"header:{Shopify-Shop-Domain}:{Shopify-Topic}:{Shopify-Event-Id}",
			"header:{X-Shopify-Shop-Domain}:{X-Shopify-Topic}:webhook={X-Shopify-Webhook-Id}",
			"header:{Shopify-Shop-Domain}:{Shopify-Topic}:webhook={Shopify-Webhook-Id}",
		},
		Types:   []string{"header:X-Shopify-Topic", "header:Shopify-Topic"},
		Created: "header:X-Shopify-Triggered-At", Entity: "json:id", Version: "json:updated_at",
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"id":1001,"name":"#{id}"}`,
			Header: map[string]string{
				"X-Shopify-Topic": "orders/paid", "X-Shopify-Shop-Domain": "hookonce.myshopify.com",
				"X-Shopify-Event-Id": "{id}", "X-Shopify-Webhook-Id": "w-{id}", "X-Shopify-Triggered-At": "{time}",
			},
			Sign: func(d *Draft) {
				d.Header.Set("X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

package provider

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/hookonce/hookonce"
)

func woocommerce() Preset {
	return Preset{
		Name: "woocommerce", Title: "WooCommerce", Confidence: "high",
		Docs:     "https://woocommerce.com/document/webhooks/",
		Verifies: "X-WC-Webhook-Signature (HMAC-SHA256 of the body, base64)",
		Secrets:  "the secret of the webhook; & itself where the shop's database says &amp;",
		Trap: "X-WC-Webhook-Delivery-ID is made of the webhook's id and the second: two orders of one second share it, and a repeat has another " +
			"one. It never delivers again; after more than five failures the webhook is switched off.",
		Verifier: bodyHMAC("X-Wc-Webhook-Signature", "base64", ""),
		Volatile: map[string]string{"header:X-Wc-Webhook-Delivery-Id": "is shared by all events of one second", "header:X-Wc-Webhook-Id": "names the webhook, not the event"},
		Keys: []string{
			"json:{header:X-WC-Webhook-Topic}:{id}:{date_modified_gmt}", // what "updated" tells is this state
			"json:{header:X-WC-Webhook-Topic}:{id}:",                    // "deleted" has the id alone
		},
		Types:   []string{"header:X-WC-Webhook-Topic"},
		Created: "json:date_modified_gmt", Entity: "json:id", Version: "json:date_modified_gmt",
		Probe: func(r *Request, _ Settings) (Reply, bool) {
			return Reply{Answer: hookonce.Answer{Status: 200}}, pingForm(r)
		},
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"id":"{id}","status":"processing","date_modified_gmt":"{time}"}`,
			Header: map[string]string{
				"X-WC-Webhook-Topic": "order.updated", "X-WC-Webhook-ID": "7", "X-WC-Webhook-Delivery-ID": "{id}",
			},
			Sign: func(d *Draft) {
				d.Header.Set("X-WC-Webhook-Signature", base64.StdEncoding.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

// pingForm tells whether the body is what WooCommerce sends when a webhook is
// made, "webhook_id=7": that field and nothing else.
func pingForm(r *Request) bool {
	number, ok := strings.CutPrefix(string(r.Body), "webhook_id=")
	if !ok || number == "" || len(number) > 20 || r.Header.Get("X-Wc-Webhook-Signature") != "" {
		return false
	}
	return strings.Trim(number, "0123456789") == ""
}

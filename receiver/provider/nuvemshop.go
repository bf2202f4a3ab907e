package provider

import (
	"crypto/sha256"
	"encoding/hex"
)

func nuvemshop() Preset {
	return Preset{
		Name: "nuvemshop", Title: "Nuvemshop / Tiendanube", Confidence: "high",
		Docs:     "https://tiendanube.github.io/api-documentation/resources/webhook",
		Verifies: "x-linkedstore-hmac-sha256 (HMAC-SHA256 of the body, hex)",
		Secrets:  "the app's client secret",
		Trap: "There is no event id and no time: two updates of one order are byte-identical, so that any key would swallow real ones. Every " +
			"delivery is an event; let its effect look the resource up.",
		Verifier: bodyHMAC("X-Linkedstore-Hmac-Sha256", "hex", ""),
		Keys:     []string{"json:{store_id}:{event}:{id}", "json:{store_id}:{event}"},
		NoDedup:  true,
		Types:    []string{"json:event"},
		Entity:   "json:id",
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"store_id":123,"event":"order/paid","id":"{id}"}`,
			Sign: func(d *Draft) {
				d.Header.Set("X-Linkedstore-Hmac-Sha256", hex.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

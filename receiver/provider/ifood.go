package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/hookonce/hookonce"
)

func ifood() Preset {
	return Preset{
		Name: "ifood", Title: "iFood", Confidence: "high",
		Docs:     "https://developer.ifood.com.br/pt-BR/docs/guides/modules/events/webhook-request",
		Verifies: "X-IFood-Signature (HMAC-SHA256 of the body, hex)",
		Secrets:  "the client secret of the application",
		Trap: "KEEPALIVE messages have an id too and are no events: they are answered and forgotten. Only 202 within 5 s counts; a 4xx is never " +
			"repeated, so that what has no key is parked.",
		Verifier: bodyHMAC("X-Ifood-Signature", "hex", ""),
		Keys:     []string{"json:id"},
		Types:    []string{"json:fullCode", "json:code"},
		Created:  "json:createdAt", Entity: "json:orderId", Version: "json:createdAt",
		Handshake: func(r *Request, _ Settings) (Reply, bool) {
			alive := bytes.Contains(r.Body, []byte("KEEPALIVE")) && (text(r.Body, "fullCode") == "KEEPALIVE" || text(r.Body, "code") == "KEEPALIVE")
			return Reply{Answer: hookonce.Answer{Status: 202}}, alive
		},
		Status: 202, ParkNoKey: true,
		Sample: Sample{
			Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret",
			Body: `{"code":"PLC","fullCode":"PLACED","id":"{id}","orderId":"o-{id}","createdAt":"{time}"}`,
			Sign: func(d *Draft) {
				d.Header.Set("X-IFood-Signature", hex.EncodeToString(d.hmac(sha256.New, string(d.Body))))
			},
		},
	}
}

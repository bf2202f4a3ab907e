package provider

import (
	"crypto/ed25519"
	"encoding/hex"

	"github.com/hookonce/hookonce"
)

const (
	discordSignature = "X-Signature-Ed25519"
	discordTimestamp = "X-Signature-Timestamp"
)

func discord() Preset {
	return Preset{
		Name: "discord", Title: "Discord", Confidence: "high",
		Docs:     "https://discord.com/developers/docs/events/webhook-events",
		Verifies: "X-Signature-Ed25519 (Ed25519 over timestamp and body, hex); the timestamp within verify.tolerance",
		Secrets:  "the application's public key, hexadecimal",
		Trap: "Webhook events have no id: the key is application, type, time and whom it is about. PING has type 0 for events and is answered " +
			"204, and type 1 for interactions, answered {\"type\":1}. Discord probes with wrong signatures and drops the URL that takes them.",
		Takes: []string{"keys"},
		Verifier: func(s Settings) (Verifier, error) {
			tolerance, err := s.timed()
			if err != nil {
				return nil, err
			}
			ring, err := newKeyring(s, publicKey(0, "ed25519"))
			return &signed{
				ring: ring, headers: []string{discordSignature}, stamps: []string{discordTimestamp}, decode: fromHex, tolerance: tolerance,
				content: func(_ *Request, stamp string) (string, error) { return stamp, nil },
			}, err
		},
		Keys: []string{
			"json:{application_id}:{event.type}:{event.timestamp}:{event.data.id}",
			"json:{application_id}:{event.type}:{event.timestamp}:user={event.data.user.id}:{event.data.guild.id}",
			"json:{application_id}:{event.type}:{event.timestamp}:user={event.data.user.id}",
			"json:{application_id}:interaction:{id}",
		},
		Types:   []string{"json:event.type", "json:interaction.{type}"},
		Created: "json:event.timestamp", Entity: "json:event.data.id", Version: "json:event.timestamp",
		Handshake: func(r *Request, _ Settings) (Reply, bool) {
			switch kind := text(r.Body, "type"); {
			case kind == "0":
				return Reply{Answer: hookonce.Answer{Status: 204}, ContentType: "application/json"}, true
			case kind == "1" && text(r.Body, "event.type") == "":
				return Reply{Answer: hookonce.Answer{Status: 200, Body: `{"type":1}`}}, true
			}
			return Reply{}, false
		},
		Status: 204,
		Sample: Sample{
			Source: `secrets: [ "` + hex.EncodeToString(testEd25519().Public().(ed25519.PublicKey)) + `" ]`, Secret: testEd25519Seed,
			Body: `{"version":1,"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"{time}","data":{"id":"{id}"}}}`,
			Sign: func(d *Draft) {
				d.Header.Set(discordTimestamp, d.seconds())
				d.Header.Set(discordSignature, hex.EncodeToString(ed25519.Sign(testEd25519(), []byte(d.seconds()+string(d.Body)))))
			},
		},
	}
}

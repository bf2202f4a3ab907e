package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/hookonce/hookonce"
)

func zoom() Preset {
	return Preset{
		Name: "zoom", Title: "Zoom", Confidence: "medium",
		Docs:     "https://developers.zoom.us/docs/api/webhooks/",
		Verifies: "x-zm-signature: v0=… (HMAC-SHA256 of v0:timestamp:body, hex); the timestamp within verify.tolerance",
		Secrets:  "the app's webhook secret token; its first signs the answer to url_validation",
		Trap:     "There is no documented event id: the key is event, object and event_ts. x-zm-request-timestamp is made anew for each attempt.",
		Verifier: versioned("X-Zm-Signature", "X-Zm-Request-Timestamp"),
		Keys: []string{
			"json:{event}:{payload.account_id}:{payload.object.uuid}:{event_ts}",
			"json:{event}:{payload.account_id}:id={payload.object.id}:{event_ts}",
		},
		Types:   []string{"json:event"},
		Created: "json:event_ts", Entity: "json:payload.object.id", Version: "json:event_ts",
		Handshake: func(r *Request, s Settings) (Reply, bool) {
			if text(r.Body, "event") != "endpoint.url_validation" {
				return Reply{}, false
			}
			plain := text(r.Body, "payload.plainToken")
			secret := ""
			for _, candidate := range s.all() {
				if candidate.Value != "" && active(candidate.Expires, r.Now) {
					secret = candidate.Value
					break
				}
			}
			m := hmac.New(sha256.New, []byte(secret))
			m.Write([]byte(plain))
			body, _ := json.Marshal(struct { // texts: cannot fail
				Plain     string `json:"plainToken"`
				Encrypted string `json:"encryptedToken"`
			}{plain, hex.EncodeToString(m.Sum(nil))})
			return Reply{Answer: hookonce.Answer{Status: 200, Body: string(body)}}, true
		},
		Sample: versionedSample("X-Zm-Signature", "X-Zm-Request-Timestamp",
			`{"event":"meeting.started","event_ts":{ms},"payload":{"account_id":"a1","object":{"id":"m1","uuid":"{id}"}}}`),
	}
}

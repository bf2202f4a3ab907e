package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/hookonce/hookonce"
)

// versioned makes the verifier of Slack and Zoom: "v0=" and the HMAC-SHA256 of
// v0:timestamp:body in hexadecimal.
func versioned(signature, timestamp string) func(Settings) (Verifier, error) {
	return func(s Settings) (Verifier, error) {
		tolerance, err := s.timed()
		if err != nil {
			return nil, err
		}
		ring, err := newKeyring(s, hmacKey(sha256Hash))
		return &signed{
			ring: ring, headers: []string{signature}, stamps: []string{timestamp}, prefix: "v0=", decode: fromHex, tolerance: tolerance,
			content: func(_ *Request, stamp string) (string, error) { return "v0:" + stamp + ":", nil },
		}, err
	}
}

func versionedSample(signature, timestamp, body string) Sample {
	return Sample{
		Source: `secrets: [ "hookonce-test-secret" ]`, Secret: "hookonce-test-secret", Body: body,
		Sign: func(d *Draft) {
			d.Header.Set(timestamp, d.seconds())
			d.Header.Set(signature, "v0="+hex.EncodeToString(d.hmac(sha256.New, "v0:"+d.seconds()+":"+string(d.Body))))
		},
	}
}

func slack() Preset {
	return Preset{
		Name: "slack", Title: "Slack", Confidence: "high",
		Docs:     "https://api.slack.com/authentication/verifying-requests-from-slack",
		Verifies: "X-Slack-Signature: v0=… (HMAC-SHA256 of v0:timestamp:body, hex); the timestamp within verify.tolerance",
		Secrets:  "the app's signing secret",
		Trap: "X-Slack-Retry-Num is no reason to drop a delivery: the first try may have failed. The signature is made anew for each attempt. " +
			"Commands and interactions are forms, keyed by their trigger_id.",
		Verifier: versioned("X-Slack-Signature", "X-Slack-Request-Timestamp"),
		Keys:     []string{"json:{team_id}:{event_id}", "json:event_id", "form:{team_id}:{trigger_id}", "json:{team.id}:{trigger_id}"},
		Types:    []string{"json:event.type", "json:type", "form:command"},
		Created:  "json:event_time", Entity: "json:event.channel", Version: "json:event.event_ts",
		FormJSON: "payload",
		Handshake: func(r *Request, _ Settings) (Reply, bool) {
			if text(r.Body, "type") != "url_verification" {
				return Reply{}, false
			}
			body, _ := json.Marshal(map[string]string{"challenge": text(r.Body, "challenge")}) // a text: cannot fail
			return Reply{Answer: hookonce.Answer{Status: 200, Body: string(body)}}, true
		},
		Sample: versionedSample("X-Slack-Signature", "X-Slack-Request-Timestamp",
			`{"type":"event_callback","team_id":"T1","api_app_id":"A1","event_id":"Ev{id}","event_time":{seconds},"event":{"type":"app_mention","channel":"C1"}}`),
	}
}

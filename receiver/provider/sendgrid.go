package provider

import (
	"encoding/base64"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

const (
	sendgridSignature = "X-Twilio-Email-Event-Webhook-Signature"
	sendgridTimestamp = "X-Twilio-Email-Event-Webhook-Timestamp"
)

func sendgrid() Preset {
	return Preset{
		Name: "sendgrid", Title: "SendGrid Event Webhook", Confidence: "high",
		Docs:     "https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features",
		Verifies: "X-Twilio-Email-Event-Webhook-Signature (ECDSA P-256, SHA-256 of timestamp and body, base64); the timestamp within verify.tolerance (1 day: a retry may repeat it)",
		Secrets:  "the verification key of the settings page (a public key)",
		Trap: "The body ends in CRLF, which is signed. sg_message_id is shared by all events of a mail. Some events have no sg_event_id: their " +
			"key is mail, event, time and message. Senders have been seen to give a repeat another sg_event_id: then name " +
			"key: [ \"json:{email}:{event}:{timestamp}:{sg_message_id}\" ].",
		Tolerance: 24 * time.Hour,
		Takes:     []string{"keys"},
		Verifier: func(s Settings) (Verifier, error) {
			tolerance, err := s.timed()
			if err != nil {
				return nil, err
			}
			ring, err := newKeyring(s, publicKey(sha256Hash, "ecdsa"))
			return &signed{
				ring: ring, headers: []string{sendgridSignature}, stamps: []string{sendgridTimestamp}, decode: fromBase64, tolerance: tolerance,
				content: func(_ *Request, stamp string) (string, error) { return stamp, nil },
			}, err
		},
		Keys: []string{
			"json:sg_event_id",
			"json:{email}:{event}:{timestamp}:{sg_message_id}",
			"json:{email}:{event}:{timestamp}:", // group events have no message
		},
		Types:   []string{"json:event"},
		Created: "json:timestamp", Entity: "json:sg_message_id", Version: "json:timestamp",
		Split: splitArray, Batches: true,
		Sample: Sample{
			Source: `secrets: [ "` + testECDSAPublic() + `" ]`, Secret: testECDSASeed,
			Body: `[{"email":"ana@example.com","event":"delivered","sg_event_id":"{id}","sg_message_id":"m-{id}","timestamp":{seconds}}]` + "\r\n",
			Sign: func(d *Draft) {
				d.Header.Set(sendgridTimestamp, d.seconds())
				d.Header.Set(sendgridSignature, base64.StdEncoding.EncodeToString(d.ecdsa(d.seconds()+string(d.Body))))
			},
		},
	}
}

// splitArray takes a body apart that is an array.
func splitArray(body []byte, limit int) ([]Item, bool, error) {
	root, ok := jsonpath.Root(body)
	if !ok || root.Kind != jsonpath.Array {
		return nil, false, fmt.Errorf("%w: no JSON array", ErrShape)
	}
	b := &batch{limit: limit}
	err := each(root, func(item jsonpath.Value) error { return b.add(Item{Raw: item.Raw, Named: true}) })
	return b.items, true, err
}

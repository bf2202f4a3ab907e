package receiver_test

import (
	"strings"
	"testing"

	"github.com/hookonce/hookonce/receiver/provider"
)

// variant is a further delivery: the sample's body with some of its text
// exchanged, other headers, and whether it is the same event.
type variant struct {
	old, new string
	headers  []string
	same     bool
}

// TestTraps: for each provider, what looks like the same event and is another
// one, and what looks like another and is the same.
func TestTraps(t *testing.T) {
	for name, variants := range map[string][]variant{
		"stripe": {
			{`"created"`, `"pending_webhooks":0,"created"`, nil, true},
			{`"evt_{id}"`, `"evt_other"`, nil, false}, // one object, two events
		},
		"pagarme": {
			{`"paid"}`, `"paid","x":1}`, nil, true},
			{`"hook_{id}"`, `"hook_other"`, nil, false},
		},
		"whatsapp": {
			{`"contacts":[{"wa_id":"15550000002"}],`, ``, nil, true},
			{`"phone_number_id":"100"`, `"phone_number_id":"200"`, nil, false},
			{`"messages":[`, `"statuses":[{"id":"wamid.{id}","status":"read"}],"x":[`, nil, false},
		},
		"evolution": {
			{`"date_time":"{time}"`, `"date_time":"later"`, nil, true},
			{`@s.whatsapp.net`, `@lid`, nil, true}, // flips for one contact
			{`"instance":"hookonce"`, `"instance":"other"`, nil, false},
			{`"fromMe":false`, `"fromMe":true`, nil, false},
		},
		"ifood":   {{`"createdAt":"{time}"`, `"createdAt":"x"`, nil, true}, {`"id":"{id}"`, `"id":"other"`, nil, false}},
		"asaas":   {{`&368604920`, `&368604921`, nil, false}, {`PAYMENT_RECEIVED`, `PAYMENT_RECEIVED `, nil, true}},
		"pagbank": {{`"PAID"`, `"CANCELED"`, nil, false}, {`"created_at":"{time}"`, `"created_at":"x"`, nil, true}, {`"status":"PAID"}`, `"status":"PAID"},{"id":"CHAR_2","status":"WAITING"}`, nil, false}},
		"efi": {
			{`"txid":"t1"`, `"txid":"t2"`, nil, true},
			{`"E{id}"`, `"E2"`, nil, false}, // txid is shared by payments
			{`"horario"`, `"devolucoes":[{"id":"D","status":"DEVOLVIDO"}],"horario"`, nil, false},
		},
		"woovi":             {{`OPENPIX:CHARGE_COMPLETED`, `OPENPIX:CHARGE_EXPIRED`, nil, false}, {`"time":"{time}"`, `"time":"x"`, nil, true}},
		"hotmart":           {{`"id":"{id}"`, `"id":"other"`, nil, false}, {`PURCHASE_APPROVED`, `PURCHASE_APPROVED `, nil, true}},
		"standard-webhooks": {{`invoice.paid`, `invoice.paid2`, nil, true}},
		"svix":              {{`invoice.paid`, `invoice.paid2`, nil, true}},
		"github":            {{`"number":7`, `"number":8`, nil, true}, {`"number":7`, `"number":9`, []string{"X-GitHub-Delivery", "other"}, false}},
		"shopify": {
			{``, ``, []string{"X-Shopify-Webhook-Id", "another subscription"}, true},
			{``, ``, []string{"X-Shopify-Topic", "orders/updated"}, false},
			{``, ``, []string{"X-Shopify-Shop-Domain", "other.myshopify.com"}, false},
		},
		"slack": {{`"event_time"`, `"x":1,"event_time"`, []string{"X-Slack-Retry-Num", "2"}, true}, {`"T1"`, `"T2"`, nil, false}},
		"twilio": {
			{`delivered`, `delivered&x=1`, nil, true},
			{`delivered`, `read`, []string{"I-Twilio-Idempotency-Token", "other"}, false},
		},
		"paypal": {{`"WH-{id}"`, `"WH-other"`, []string{}, false}},
		"square": {{`"created_at":"{time}"`, `"created_at":"x"`, nil, true}, {`"M1"`, `"M2"`, nil, false}},
		"paddle": {{`"ntf_{id}"`, `"ntf_replay"`, nil, true}, {`"evt_{id}"`, `"evt_other"`, nil, false}},
		"sendgrid": {
			{`"event":"delivered"`, `"event":"delivered","x":1`, nil, true},
			{`"sg_event_id":"{id}"`, `"sg_event_id":"other"`, nil, false}, // one mail, two events
		},
		"discord": {{`"version":1`, `"version":2`, nil, true}, {`"data":{"id":"{id}"}`, `"data":{"user":{"id":"{id}"}}`, nil, false}},
		"telegram": {
			{`"message_id":1`, `"message_id":2`, nil, true},
			{`"update_id":"{id}"`, `"update_id":7`, nil, false}, // message_id counts in a chat
		},
		"zoom":         {{`"id":"m1"`, `"id":"m2"`, nil, true}, {`meeting.started`, `meeting.ended`, nil, false}, {`{ms}`, `1`, nil, false}},
		"gitlab":       {{`"project_id":1`, `"project_id":2`, []string{"X-Gitlab-Event-UUID", "x"}, true}},
		"linear":       {{`"data":{`, `"x":1,"data":{`, nil, true}, {`"data":{`, `"y":1,"data":{`, []string{"Linear-Delivery", "other"}, false}},
		"typeform":     {{`"submitted_at":"{time}"`, `"submitted_at":"x"`, nil, true}, {`"event_id":"{id}"`, `"event_id":"other"`, nil, false}},
		"woocommerce":  {{``, ``, []string{"X-WC-Webhook-Delivery-ID", "x"}, true}, {`"date_modified_gmt":"{time}"`, `"date_modified_gmt":"x"`, nil, false}},
		"nuvemshop":    {{``, ``, nil, false}, {``, ``, nil, false}},
		"vtex":         {{`"LastState":"payment-pending"`, `"LastState":"x"`, nil, true}, {`"CurrentChange":"{time}"`, `"CurrentChange":"x"`, nil, false}},
		"mercadolivre": {{`"attempts":1`, `"attempts":2`, nil, true}, {`"_id":"{id}"`, `"_id":"other"`, nil, false}},
		"stone-openbank": {
			{`"jti":"{id}",`, `"jti":"{id}","event_notified_at":"x",`, nil, true},
			{``, ``, []string{"X-Stone-Webhook-Event-Id", "other"}, false},
		},
		"adyen":       {{`"eventDate":"{time}"`, `"eventDate":"x"`, nil, true}},
		"mailgun":     {{`"event":"delivered"`, `"event":"opened"`, nil, true}},
		"mercadopago": {{`"action":"payment.updated"`, `"action":"payment.created"`, nil, true}},
	} {
		p, ok := provider.Lookup(name)
		if !ok {
			t.Fatal(name)
		}
		t.Run(name, func(t *testing.T) {
			b := newBench(t, sampleSource(t, p))
			wantStatus(t, b.send(signedSample(t, p, p.Sample.Body)), successOf(p))
			for i, v := range variants {
				body := strings.Replace(p.Sample.Body, v.old, v.new, 1)
				if v.old != v.new && body == p.Sample.Body {
					t.Fatalf("%d: %q is not in the sample", i, v.old)
				}
				w := b.send(signedSample(t, p, body, v.headers...))
				if w.Code == 401 && p.Guard.Reject && !v.same {
					continue // another event behind a signature that was taken
				}
				wantStatus(t, w, successOf(p))
				if same := w.Header().Get("Idempotent-Replayed") != ""; same != v.same {
					t.Errorf("%d: %s: same event: %v, want %v (%v)", i, v.new, same, v.same, w.Header())
				}
			}
		})
	}
}

func successOf(p provider.Preset) int {
	if p.Status != 0 {
		return p.Status
	}
	return 200
}

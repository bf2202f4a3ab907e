package provider_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/receiver/provider"
)

// vector is one entry of testdata/vectors.json: what a provider has signed.
type vector struct {
	Provider, Origin, Key, Signed, Expected string
}

func vectors(t testing.TB) map[string]vector {
	t.Helper()
	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	byName := map[string]vector{}
	for _, v := range list {
		byName[v.Provider] = v
	}
	return byName
}

// delivery is a vector as the provider would send it.
type delivery struct {
	preset   string
	settings provider.Settings
	// unsignedBody is what the signature does not cover, when it covers no body.
	unsignedBody string
	// header are name, value, name, value; {sig} is the vector's signature.
	header []string
	url    string
	at     int64
	// cut is what of the signed text is not the body, from its beginning.
	cut string
}

func hub(preset, secret, header, value string) delivery {
	return delivery{preset: preset, settings: provider.Settings{Secrets: []string{secret}}, header: []string{header, value}}
}

// deliveries says how each vector comes over the wire.
func deliveries(v map[string]vector) map[string]delivery {
	key := func(name string) []string { return []string{v[name].Key} }
	stamped := func(d delivery, at int64, cut string) delivery {
		d.at, d.cut = at, cut
		return d
	}
	all := map[string]delivery{
		"stripe":                     stamped(hub("stripe", v["stripe"].Key, "Stripe-Signature", "t=1492774577,v1={sig}"), 1492774577, "1492774577."),
		"stripe-retry-of-same-event": stamped(hub("stripe", v["stripe"].Key, "Stripe-Signature", "t=1492778177,v1={sig}"), 1492778177, "1492778177."),
		"pagarme-v4": {
			preset: "pagarme", settings: provider.Settings{Scheme: "hmac-sha1", Secrets: key("pagarme-v4")},
			header: []string{"X-Hub-Signature", "sha1={sig}"},
		},
		"whatsapp":                   hub("whatsapp", "app_secret", "X-Hub-Signature-256", "sha256={sig}"),
		"ifood-compact":              hub("ifood", "dummysecret", "X-IFood-Signature", "{sig}"),
		"ifood-spaces":               hub("ifood", "dummysecret", "X-IFood-Signature", "{sig}"),
		"ifood-pretty":               hub("ifood", "dummysecret", "X-IFood-Signature", "{sig}"),
		"ifood-keepalive":            hub("ifood", "dummysecret", "X-IFood-Signature", "{sig}"),
		"pagbank-authenticity-token": stamped(hub("pagbank", "mytoken", "x-authenticity-token", "{sig}"), 0, "mytoken-"),
		"woovi-hmac":                 hub("woovi", "hmac-secret-key", "X-OpenPix-Signature", "{sig}"),
		"woovi-rsa":                  hub("woovi", v["woovi-rsa"].Key, "x-webhook-signature", "{sig}"),
		"github":                     hub("github", v["github"].Key, "X-Hub-Signature-256", "sha256={sig}"),
		"shopify":                    hub("shopify", "hush", "X-Shopify-Hmac-Sha256", "{sig}"),
		"adyen-item":                 {},
		"typeform":                   hub("typeform", "abc123", "Typeform-Signature", "sha256={sig}"),
		"woocommerce":                hub("woocommerce", "a&b", "X-WC-Webhook-Signature", "{sig}"),
		"nuvemshop":                  hub("nuvemshop", "secret", "x-linkedstore-hmac-sha256", "{sig}"),
		"linear":                     stamped(hub("linear", "lin_wh_test", "Linear-Signature", "{sig}"), 1700000000, ""),
		"paddle":                     stamped(hub("paddle", v["paddle"].Key, "Paddle-Signature", "ts=1710929255;h1={sig}"), 1710929255, "1710929255:"),
		"mailgun": {
			preset: "mailgun", settings: provider.Settings{Secrets: key("mailgun")}, at: 1529006854,
			unsignedBody: `{"signature":{"timestamp":"1529006854","token":"a8ce0edb2dd8301dee6c2405235584e45aa91d1e9f979f3de0","signature":"{sig}"},"event-data":{"id":"e"}}`,
		},
		"discord": {
			preset: "discord", settings: provider.Settings{Secrets: key("discord")}, at: 1700000000, cut: "1700000000",
			header: []string{"X-Signature-Ed25519", "{sig}", "X-Signature-Timestamp", "1700000000"},
		},
		"sendgrid": {
			preset: "sendgrid", settings: provider.Settings{Secrets: key("sendgrid")}, at: 1600112502, cut: "1600112502",
			header: []string{"X-Twilio-Email-Event-Webhook-Signature", "{sig}", "X-Twilio-Email-Event-Webhook-Timestamp", "1600112502"},
		},
		"evolution-jwt": {
			preset: "evolution", settings: provider.Settings{Secrets: key("evolution-jwt")}, at: 1700000000 + 900, // 15 minutes later: a late attempt
			header: []string{"Authorization", "Bearer " + v["evolution-jwt"].Signed + ".{sig}"}, unsignedBody: `{"event":"messages.upsert"}`,
		},
		"twilio-form": {
			preset: "twilio", settings: provider.Settings{Secrets: []string{"12345"}}, url: "https://mycompany.com/myapp.php?foo=1&bar=2",
			header:       []string{"X-Twilio-Signature", "{sig}", "Content-Type", "application/x-www-form-urlencoded"},
			unsignedBody: "Digits=1234&CallSid=CA1234567890ABCDE&To=%2B18005551212&Caller=%2B14158675309&From=%2B14158675309&ReasonConferenceEnded=test&Reason=Participant",
		},
		"twilio-json": {
			preset: "twilio", settings: provider.Settings{Secrets: []string{"12345"}}, url: v["twilio-json"].Signed,
			header: []string{"X-Twilio-Signature", "{sig}", "Content-Type", "application/json"}, unsignedBody: `{"property": "value", "boolean": true}`,
		},
	}
	all["adyen-item"] = delivery{
		preset: "adyen", settings: provider.Settings{Secrets: key("adyen-item")},
		unsignedBody: `{"live":"false","notificationItems":[{"NotificationRequestItem":{"pspReference":"pspReference","originalReference":"originalReference",` +
			`"merchantAccountCode":"merchantAccount","merchantReference":"reference","amount":{"value":1000,"currency":"EUR"},"eventCode":"EVENT","success":"true",` +
			`"additionalData":{"hmacSignature":"{sig}"}}}]}`,
	}
	for name, id := range map[string]string{"mercadopago-lower": "ord01jq4s4ky8hwq6na5pxb65b3d3", "mercadopago-asis": "ORD01JQ4S4KY8HWQ6NA5PXB65B3D3"} {
		all[name] = delivery{
			preset: "mercadopago", settings: provider.Settings{Secrets: key(name)}, at: 1742505638, url: "https://h.example/x?data.id=" + id + "&type=order",
			header:       []string{"x-signature", "ts=1742505638683,v1={sig}", "x-request-id", "2066ca19-c6f1-498a-be75-1923005edd06"},
			unsignedBody: `{"data":{"id":"` + id + `"}}`,
		}
	}
	for name, header := range map[string]string{"standard-webhooks/svix/resend": "webhook", "svix": "svix"} {
		all[name] = delivery{
			preset: map[string]string{"webhook": "standard-webhooks", "svix": "svix"}[header], at: 1614265330, cut: "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.",
			settings: provider.Settings{Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}},
			header:   []string{header + "-id", "msg_p5jXN8AQM9LWM0D4loKWxJek", header + "-timestamp", "1614265330", header + "-signature", "v1,{sig}"},
		}
	}
	all["gitlab-signing-token"] = delivery{
		preset: "gitlab", at: 1700000000, cut: "a5461c4d-9c7f-4af9-add6-cddebe3c426f.1700000000.",
		settings: provider.Settings{Secrets: []string{"whsec_" + v["gitlab-signing-token"].Key}},
		header: []string{
			"webhook-id", "a5461c4d-9c7f-4af9-add6-cddebe3c426f", "webhook-timestamp", "1700000000", "webhook-signature", "v1,{sig}",
		},
	}
	for name, stamp := range map[string]string{"slack-docs": "1531420618", "slack-go": "1531431954"} {
		all[name] = delivery{
			preset: "slack", settings: provider.Settings{Secrets: key(name)}, cut: "v0:" + stamp + ":",
			at:     map[string]int64{"slack-docs": 1531420618, "slack-go": 1531431954}[name],
			header: []string{"X-Slack-Signature", "v0={sig}", "X-Slack-Request-Timestamp", stamp},
		}
	}
	for name, url := range map[string]string{"square": "https://webhook.site/679a4f3a-dcfa-49ee-bac5-9d0edad886b9", "square-angle-brackets": "https://webhook.site/webhooks"} {
		all[name] = delivery{
			preset: "square", settings: provider.Settings{Secrets: key(name)}, url: url, cut: url,
			header: []string{"x-square-hmacsha256-signature", "{sig}"},
		}
	}
	return all
}

// request is a vector on the wire.
func (d delivery) request(v vector) *provider.Request {
	body := strings.TrimPrefix(v.Signed, d.cut)
	if d.unsignedBody != "" {
		body = strings.ReplaceAll(d.unsignedBody, "{sig}", v.Expected)
	}
	r := &provider.Request{Method: http.MethodPost, Target: "/hooks/x", Header: http.Header{}, Body: []byte(body), Now: time.Unix(d.at, 0)}
	if d.url != "" {
		host, target, _ := strings.Cut(strings.TrimPrefix(d.url, "https://"), "/")
		r.TLS, r.Host, r.Target = true, host, "/"+target
	}
	for i := 0; i < len(d.header); i += 2 {
		r.Header.Add(d.header[i], strings.ReplaceAll(d.header[i+1], "{sig}", v.Expected))
	}
	return r
}

// TestVectors: every vector of the fact sheet verifies, nothing near it does,
// and no error shows a secret.
func TestVectors(t *testing.T) {
	known := vectors(t)
	known["svix"] = known["standard-webhooks/svix/resend"]
	ways := deliveries(known)
	for name, v := range known {
		if name == "zoom-url-validation" {
			continue // an answer, not a signature: TestZoomValidation
		}
		d, ok := ways[name]
		if !ok {
			t.Errorf("no test reads the vector %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			preset, ok := provider.Lookup(d.preset)
			if !ok {
				t.Fatalf("no preset %s", d.preset)
			}
			verifier, err := preset.NewVerifier(d.settings)
			if err != nil {
				t.Fatal(err)
			}
			if err := verifier.Verify(d.request(v)); err != nil {
				t.Fatalf("refused: %v", err)
			}
			d.near(t, verifier, v)
			for _, secret := range d.settings.Secrets {
				other := d.settings
				other.Secrets = []string{otherSecret(secret)}
				verifier, err := preset.NewVerifier(other)
				if err != nil {
					continue // a public key cannot be changed by a letter
				}
				// A text that is no public key is Woovi's older kind of secret: its
				// signature is then missing.
				if err := verifier.Verify(d.request(v)); !errors.Is(err, provider.ErrMismatch) && !errors.Is(err, provider.ErrMissing) {
					t.Errorf("another secret: %v", err)
				}
			}
		})
	}
}

// near sends what is almost the vector.
func (d delivery) near(t *testing.T, verifier provider.Verifier, v vector) {
	refused := func(what string, r *provider.Request, want error) {
		t.Helper()
		err := verifier.Verify(r)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
		if d.settings.Secrets[0] != "secret" { // a word of the errors
			noSecrets(t, err, append(d.settings.Secrets, v.Expected))
		}
	}
	changed := v
	changed.Expected = altered(v.Expected)
	refused("changed signature", d.request(changed), provider.ErrMismatch)
	if d.unsignedBody == "" {
		r := d.request(v)
		r.Body = append(r.Body, ' ')
		refused("a space more", r, provider.ErrMismatch)
	}
	for i := 0; i < len(d.header); i += 2 {
		if !strings.Contains(d.header[i+1], "{sig}") {
			continue
		}
		r := d.request(v)
		r.Header.Del(d.header[i])
		refused("no signature", r, provider.ErrMissing)
		r = d.request(v)
		r.Header.Add(d.header[i], r.Header.Get(d.header[i]))
		refused("two signatures", r, provider.ErrMismatch)
	}
	if d.at == 0 {
		return
	}
	for _, far := range []time.Duration{-30 * 24 * time.Hour, 30 * 24 * time.Hour} {
		r := d.request(v)
		r.Now = r.Now.Add(far)
		refused("another time", r, provider.ErrMismatch)
	}
}

// altered changes a signature in its middle, where every character counts.
func altered(sig string) string {
	at := len(sig) / 2
	c := "a"
	if sig[at] == 'a' {
		c = "b"
	}
	return sig[:at] + c + sig[at+1:]
}

func otherSecret(secret string) string {
	if rest, ok := strings.CutPrefix(secret, "whsec_"); ok {
		return "whsec_" + otherSecret(rest)
	}
	c := "A"
	if strings.HasPrefix(secret, "A") {
		c = "B"
	}
	return c + secret[1:]
}

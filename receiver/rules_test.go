package receiver_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/receiver"
	"github.com/hookonce/hookonce/receiver/provider"
)

// TestB04: Twilio signs the public address and the form.
func TestB04(t *testing.T) {
	source := receiver.Source{Name: "sms", Path: "/twilio/sms", Provider: "twilio", Secrets: []string{"tok_B04"}}
	other := with(source, func(s *receiver.Source) { s.Name, s.Path = "conv", "/twilio/conv" })
	b := newBenchWith(t, func(c *receiver.Config) { c.PublicURL = "https://hooks.example.com" }, source, other)
	form := "MessageSid=SM1&Body=Hi&To=%2B15550002222&From=%2B15550001111"
	post := func(target, body, sig string, headers ...string) *httptest.ResponseRecorder {
		r := formPost(target, body)
		r.Host = "hooks.example.com:443"
		return b.send(r, append([]string{"X-Twilio-Signature", sig}, headers...)...)
	}
	// No status and no token: verified, then without a key.
	wantStatus(t, post("/twilio/sms", form, "gZWMC4sxG106h0V037zojNatSLg=", "I-Twilio-Idempotency-Token", "i1"), 200)
	wantStatus(t, post("/twilio/sms", form, "gZWMC4sxG106h0V037zojNatSLg=", "X-Forwarded-Host", "evil.example", "I-Twilio-Idempotency-Token", "i2"), 200)
	wantStatus(t, post("/twilio/sms", strings.Replace(form, "Hi", "Ho", 1), "gZWMC4sxG106h0V037zojNatSLg="), 401)
	wantStatus(t, post("/twilio/sms", form+"&To=x", "gZWMC4sxG106h0V037zojNatSLg="), 401)
	wantStatus(t, post("/twilio/sms?st=Trezzo%20Sull'Adda", "MessageSid=SM1", "vf7ZxHCRn9RM4Sfj/sGoZqNTxMk=", "I-Twilio-Idempotency-Token", "i3"), 200)
	conv := "ReasonConferenceEnded=left&Reason=Participant&MessagingBinding.Address=%2B15550000002&MessagingBinding.Address=%2B15550000001"
	wantStatus(t, post("/twilio/conv", conv, "eVD8M5LBYCR89YzC+lxwrBP4srk=", "I-Twilio-Idempotency-Token", "i4"), 200)
	// A body that is no form and not covered by the URL is not covered at all.
	r := httptest.NewRequest("POST", "/twilio/sms", strings.NewReader(`{"a":1}`))
	wantStatus(t, b.send(r, "Content-Type", "application/json", "X-Twilio-Signature", "gZWMC4sxG106h0V037zojNatSLg="), 401)

	// Without a public address: what the request itself says.
	b = newBench(t, source)
	r = formPost("/twilio/sms", form)
	r.Host = "hooks.example.com"
	wantStatus(t, b.send(r, "X-Twilio-Signature", "gZWMC4sxG106h0V037zojNatSLg=", "X-Forwarded-Proto", "https"), 401)
}

// TestB07GitHub: the same signed body under another delivery id is no other
// event.
func TestB07GitHub(t *testing.T) {
	at := now
	b := newBenchWith(t, func(c *receiver.Config) { c.Now = func() time.Time { return at } }, receiver.Source{Name: "gh", Provider: "github", Secrets: []string{"gh_B07"}})
	post := func(id string) *httptest.ResponseRecorder {
		return b.post("/hooks/gh", `{"action":"labeled","number":7}`, "X-GitHub-Delivery", id, "X-GitHub-Event", "issues",
			"X-Hub-Signature-256", "sha256=7d983fa72f53f66af011dd86dd3804678ce0ce61e5db58cf681df2b3414d168e")
	}
	wantStatus(t, post("g-1"), 200)
	for _, id := range []string{"g-2", "g-1"} {
		w := post(id)
		wantStatus(t, w, 200)
		if w.Header().Get("Idempotent-Replayed") != "true" || w.Header().Get("Hookonce-Key") != "gh/g-1" {
			t.Errorf("%s: %v", id, w.Header())
		}
	}
	wantStatus(t, post(""), 400)
	at = at.Add(23 * time.Hour)
	if w := post("g-3"); w.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("forgotten within the day")
	}
	at = at.Add(50 * time.Hour)
	if w := post("g-4"); w.Header().Get("Idempotent-Replayed") != "" {
		t.Error("remembered for ever: the window is bounded")
	}
	if len(b.broker.offered) != 2 || b.count(t, "gh", "duplicate") != 3 || b.broker.offered[0].Event.Type != "issues.labeled" {
		t.Errorf("%d events, %v duplicates", len(b.broker.offered), b.count(t, "gh", "duplicate"))
	}
}

// TestB07GitHubWithoutStore: GitHub does not come again, so that an event is
// published past the store; only the second look is lost.
func TestB07GitHubWithoutStore(t *testing.T) {
	b := newBench(t, preset("github", "s"))
	b.store.before = alwaysDown
	p, _ := provider.Lookup("github")
	r := signedBy(t, "github", "s", p.Sample.Body)
	wantStatus(t, b.send(r), 200)
	if len(b.broker.published) != 1 {
		t.Error("not published")
	}
}

// TestB07Mailgun: one signature stands for one event.
func TestB07Mailgun(t *testing.T) {
	b := newBench(t, receiver.Source{Name: "mg", Provider: "mailgun", Secrets: []string{"mg_B07"}})
	post := func(event string) *httptest.ResponseRecorder {
		return b.post("/hooks/mg", `{"signature":{"timestamp":"1700000000","token":"0123456789abcdef0123456789abcdef0123456789abcdef01",`+
			`"signature":"bf042517d949fa7fdb67244171a94732cf96db60868b566857016423d7e28eb0"},"event-data":`+event+`}`)
	}
	wantStatus(t, post(`{"id":"e1","event":"delivered"}`), 200)
	w := post(`{"id":"e1","event":"delivered"}`)
	wantStatus(t, w, 200)
	if w.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("a repeat is no duplicate")
	}
	wantStatus(t, post(`{"id":"e2","event":"delivered"}`), 401)
	if len(b.broker.offered) != 1 {
		t.Errorf("%d events", len(b.broker.offered))
	}
}

// TestB08Scope: a key belongs to its source, not to the secret that matched; a
// Stripe id is one event, whatever account and mode it names.
func TestB08Scope(t *testing.T) {
	b := newBench(t, receiver.Source{Name: "s", Provider: "stripe", Secrets: []string{"one", "two"}})
	for i, test := range []struct{ secret, body string }{
		{"one", `{"id":"evt_B08"}`},
		{"two", `{"id":"evt_B08"}`},
		{"one", `{"id":"evt_B08","account":"acct_1","livemode":true}`},
		{"one", `{"id":"evt_B08","account":"acct_2","livemode":false}`},
	} {
		w := b.post("/hooks/s", test.body, "Stripe-Signature", signStripe(test.secret, now, []byte(test.body)))
		wantStatus(t, w, 200)
		if (w.Header().Get("Idempotent-Replayed") != "") != (i > 0) {
			t.Errorf("%d: %v", i, w.Header())
		}
	}
	// Shopify: one event through two subscriptions is one; another topic is another.
	b = newBench(t, preset("shopify", "s"))
	for i, test := range []struct{ topic, webhook string }{{"orders/paid", "w1"}, {"orders/paid", "w2"}, {"orders/updated", "w3"}} {
		w := b.send(signedBy(t, "shopify", "s", `{"id":1}`, "X-Shopify-Topic", test.topic, "X-Shopify-Webhook-Id", test.webhook))
		wantStatus(t, w, 200)
		if (w.Header().Get("Idempotent-Replayed") != "") != (i == 1) {
			t.Errorf("%s: %v", test.webhook, w.Header())
		}
	}
}

// TestB11Mollie: pings that say the same about different events are all delivered.
func TestB11Mollie(t *testing.T) {
	at := now
	b := newBenchWith(t, func(c *receiver.Config) { c.Now = func() time.Time { return at } }, receiver.Source{
		Name: "mollie", Verify: receiver.Verify{Scheme: "none"}, Keys: []string{"form:id"}, Dedup: "none", Type: receiver.TypeRule{From: "=payment.changed"},
	})
	for _, after := range []time.Duration{0, time.Second, time.Minute, 2 * time.Minute} {
		at = now.Add(after)
		w := b.send(formPost("/hooks/mollie", "id=tr_B11exampl"))
		wantStatus(t, w, 200)
		if w.Header().Get("Idempotent-Replayed") != "" || !strings.HasPrefix(w.Header().Get("Hookonce-Key"), "mollie/tr_B11exampl~") {
			t.Errorf("%v: %v", after, w.Header())
		}
	}
	wantStatus(t, b.send(formPost("/hooks/mollie", "")), 200)
	wantStatus(t, b.send(formPost("/hooks/mollie", "")), 200)
	seen := map[string]bool{}
	for _, e := range b.broker.offered {
		seen[e.Event.Key.ID] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d events", len(seen))
	}
}

// TestB12: ids that do not survive, are missing, or come late.
func TestB12(t *testing.T) {
	// (a), (b) SendGrid
	p, _ := provider.Lookup("sendgrid")
	public := strings.Trim(strings.TrimPrefix(p.Sample.Source, "secrets: ["), `" ]`)
	b := newBench(t, preset("sendgrid", public), with(preset("sendgrid", public), func(s *receiver.Source) {
		s.Name, s.Path = "tuple", "/hooks/tuple"
		s.Keys = []string{"json:{email}:{event}:{timestamp}:{sg_message_id}"}
	}))
	body := func(id string) string {
		return `[{"email":"a@example.com","event":"open","timestamp":1,"sg_message_id":"m","sg_event_id":"` + id + `"}]`
	}
	for i, id := range []string{"one", "two"} {
		r := signedBy(t, "sendgrid", "", body(id))
		r.URL, r.RequestURI = &url.URL{Path: "/hooks/tuple"}, "/hooks/tuple"
		w := b.send(r)
		if want := map[int]string{0: "new=1", 1: "new=0"}[i]; !strings.HasPrefix(w.Header().Get("Hookonce-Items"), want) {
			t.Errorf("(a) %s: %v", id, w.Header())
		}
	}
	for i := range 2 {
		w := b.send(signedBy(t, "sendgrid", "", `[{"email":"a@example.com","event":"group_unsubscribe","timestamp":2}]`))
		if want := map[int]string{0: "new=1", 1: "new=0"}[i]; !strings.HasPrefix(w.Header().Get("Hookonce-Items"), want) {
			t.Errorf("(b): %v", w.Header())
		}
	}
	// (c), (d) Slack
	b = newBench(t, preset("slack", "s"))
	for i, headers := range [][]string{{"X-Slack-Retry-Num", "1", "X-Slack-Retry-Reason", "http_timeout"}, nil} {
		w := b.send(signedBy(t, "slack", "s", `{"type":"event_callback","team_id":"T","event_id":"Ev1","event":{"type":"message"}}`, headers...))
		wantStatus(t, w, 200)
		if (w.Header().Get("Idempotent-Replayed") != "") != (i == 1) {
			t.Errorf("slack, %d: %v", i, w.Header())
		}
	}
	// (e) GitLab
	b = newBench(t, preset("gitlab", "plain-token"))
	for _, branch := range []string{"x", "y"} {
		w := b.post("/hooks/gitlab", `{"object_kind":"push","checkout_sha":null,"ref":"`+branch+`"}`, "X-Gitlab-Token", "plain-token", "Idempotency-Key", "id-"+branch)
		wantStatus(t, w, 200)
		if w.Header().Get("Idempotent-Replayed") != "" {
			t.Errorf("branch %s: %v", branch, w.Header())
		}
	}
}

// TestB19Form: GitHub's form is signed as it is and holds the document.
func TestB19Form(t *testing.T) {
	b := newBench(t, preset("github", "s"))
	body := "payload=" + url.QueryEscape(`{"action":"opened"}`)
	r := formPost("/hooks/github", body)
	wantStatus(t, b.send(r, "X-Hub-Signature-256", signHub("s", body), "X-GitHub-Delivery", "g1", "X-GitHub-Event", "issues"), 200)
	if e := b.store.last(t).Event; e.Key.ID != "g1" || e.Type != "issues.opened" || string(e.Body) != body {
		t.Errorf("%s of type %s: %s", e.Key, e.Type, e.Body)
	}
	twice := "payload=" + url.QueryEscape(`{"action":"a","action":"b"}`)
	wantStatus(t, b.send(formPost("/hooks/github", twice), "X-Hub-Signature-256", signHub("s", twice), "X-GitHub-Delivery", "g2", "X-GitHub-Event", "issues"), 400)
}

// TestWooCommerce: two orders of one second share their delivery id.
func TestWooCommerce(t *testing.T) {
	b := newBench(t, preset("woocommerce", "s"))
	for _, body := range []string{`{"id":1,"date_modified_gmt":"2026-12-01T12:00:00"}`, `{"id":2,"date_modified_gmt":"2026-12-01T12:00:00"}`, `{"id":2,"date_modified_gmt":"2026-12-01T12:00:09"}`, `{"id":2}`} {
		w := b.send(signedBy(t, "woocommerce", "s", body, "X-WC-Webhook-Delivery-ID", "same"))
		if w.Header().Get("Idempotent-Replayed") != "" || w.Code != 200 {
			t.Errorf("%s: %d %v", body, w.Code, w.Header())
		}
	}
}

// TestEvolution: created, delivered and read are three events; a list is split.
func TestEvolution(t *testing.T) {
	b := newBench(t, preset("evolution", "s"))
	for _, test := range []struct {
		body, want string
		replayed   bool
	}{
		{`{"event":"messages.upsert","instance":"i","data":{"key":{"id":"A","fromMe":false}},"date_time":"1"}`, "", false},
		{`{"event":"messages.upsert","instance":"i","data":{"key":{"id":"A","fromMe":false}},"date_time":"2"}`, "", true},
		{`{"event":"messages.update","instance":"i","data":{"keyId":"A","status":"READ","messageId":"7"}}`, "", false},
		{`{"event":"messages.update","instance":"i","data":{"keyId":"A","status":"READ"}}`, "", true},
		{`{"event":"messages.upsert","instance":"j","data":{"key":{"id":"A","fromMe":false}}}`, "", false},
		{`{"event":"messages.delete","instance":"i","data":{"id":"A","fromMe":false,"remoteJid":"x"}}`, "", false},
		{`{"event":"connection.update","instance":"i","data":{"state":"open"},"date_time":"1"}`, "", false},
		{`{"event":"connection.update","instance":"i","data":{"state":"open"},"date_time":"2"}`, "", false},
		{`{"event":"messages.set","instance":"i","data":[{"key":{"id":"B","fromMe":true}},{"key":{"id":"C","fromMe":true}}]}`, "new=2, duplicate=0, filtered=0, parked=0", false},
	} {
		w := b.send(signedBy(t, "evolution", "s", test.body))
		wantStatus(t, w, 200)
		if (w.Header().Get("Idempotent-Replayed") != "") != test.replayed || w.Header().Get("Hookonce-Items") != test.want {
			t.Errorf("%s: %v", test.body, w.Header())
		}
	}
}

// TestMercadoPago: the body is not signed, so that it can say nothing else than
// the URL, and one signature stands for one body.
func TestMercadoPago(t *testing.T) {
	b := newBench(t, preset("mercadopago", "s"))
	body := `{"id":"n1","type":"payment","action":"payment.updated","data":{"id":"pX1"}}`
	wantStatus(t, b.send(signedBy(t, "mercadopago", "s", body)), 200)
	if w := b.send(signedBy(t, "mercadopago", "s", body)); w.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("a repeat is no duplicate")
	}
	wantStatus(t, b.send(signedBy(t, "mercadopago", "s", strings.Replace(body, "n1", "n2", 1))), 401)
	wantStatus(t, b.send(signedBy(t, "mercadopago", "s", strings.Replace(body, "pX1", "pX2", 1))), 401)
	wantStatus(t, b.post("/hooks/mercadopago?topic=payment&id=123", ""), 401)
}

// TestSourceRules: patterns, a schema, and addresses.
func TestSourceRules(t *testing.T) {
	schema := []byte(`{"type":"object","required":["order_id","total"],"properties":{"total":{"type":"number","minimum":0}}}`)
	b := newBench(t,
		with(demoSource, func(s *receiver.Source) { s.Accept, s.Ignore = []string{"order.#"}, []string{"order.draft"} }),
		with(demoSource, func(s *receiver.Source) { s.Name, s.Schema = "strict", schema }),
		with(demoSource, func(s *receiver.Source) { s.Name, s.Schema, s.OnInvalid = "parks", schema, "park" }),
		with(demoSource, func(s *receiver.Source) { s.Name, s.AllowIPs = "near", []string{"10.0.0.0/8", "::1"} }),
		with(demoSource, func(s *receiver.Source) { s.Name, s.AllowIPs = "far", []string{"192.0.2.0/24"} }),
	)
	for eventType, wanted := range map[string]bool{"order.paid": true, "order.draft": false, "cart.paid": false} {
		w := b.post("/hooks/demo", `{"type":"`+eventType+`","order_id":"`+eventType+`"}`)
		wantStatus(t, w, 200)
		if (w.Header().Get("Hookonce-Key") != "") != wanted {
			t.Errorf("%s: %v", eventType, w.Header())
		}
	}
	if b.count(t, "demo", "filtered") != 2 {
		t.Error("filtered ones are not counted")
	}

	calls := b.store.calls()
	wantStatus(t, b.post("/hooks/strict", `{"order_id":"1","total":10.00}`), 200)
	for body, place := range map[string]string{`{"order_id":"2"}`: "required", `{"order_id":"2","total":-1}`: "total", `{"order_id":"2","total":"SECRET"}`: "total"} {
		w := b.post("/hooks/strict", body)
		wantStatus(t, w, 400)
		if !strings.Contains(w.Body.String(), place) || strings.Contains(w.Body.String(), "SECRET") {
			t.Errorf("%s: %s", body, w.Body)
		}
	}
	wantStatus(t, b.post("/hooks/strict", "no json", "Idempotency-Key", "k"), 400)
	if b.store.calls() != calls+1 {
		t.Error("an invalid body reached the store")
	}
	w := b.post("/hooks/parks", `{"order_id":"2"}`)
	wantStatus(t, w, 200)
	if e := b.store.last(t).Event; !strings.HasPrefix(e.Parked, "schema: ") || e.Key.String() != "parks/2" {
		t.Errorf("%+v", e)
	}

	wantStatus(t, b.post("/hooks/near", order, "X-Forwarded-For", "10.1.2.3"), 403)
	wantStatus(t, b.post("/hooks/far", order), 200)
}

func TestRulesThatCannotWork(t *testing.T) {
	for name, change := range map[string]func(*receiver.Source){
		"schema":      func(s *receiver.Source) { s.Schema = []byte(`{"type":7}`) },
		"schema: not": func(s *receiver.Source) { s.Schema = []byte(`{`) },
		"refer":       func(s *receiver.Source) { s.Schema = []byte(`{"$ref":"https://example.com/x.json"}`) },
		"allow_ips":   func(s *receiver.Source) { s.AllowIPs = []string{"localhost"} },
		"dedup":       func(s *receiver.Source) { s.Dedup = "some" },
		"on_invalid":  func(s *receiver.Source) { s.OnInvalid = "drop" },
		"max_items":   func(s *receiver.Source) { s.MaxItems = -1 },
		"ignore":      func(s *receiver.Source) { s.Ignore = []string{"or*"} },
	} {
		_, err := receiver.New(receiver.Config{Store: constantStore{}, Sources: []receiver.Source{with(demoSource, change)}})
		word, _, _ := strings.Cut(name, ":")
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

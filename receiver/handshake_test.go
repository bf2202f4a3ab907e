package receiver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/receiver"
	"github.com/hookonce/hookonce/receiver/provider"
)

// preset is a source of a provider with its own name.
func preset(name string, secrets ...string) receiver.Source {
	return receiver.Source{Name: name, Provider: name, Secrets: secrets}
}

// signedBy signs a body as the provider's sample does.
func signedBy(t *testing.T, name, secret, body string, headers ...string) *http.Request {
	t.Helper()
	p, ok := provider.Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	return signedWith(t, p, secret, body, headers...)
}

// signedSample is signedBy with the sample's own secret.
func signedSample(t *testing.T, p provider.Preset, body string, headers ...string) *http.Request {
	t.Helper()
	return signedWith(t, p, "", body, headers...)
}

func signedWith(t *testing.T, p provider.Preset, secret, body string, headers ...string) *http.Request {
	t.Helper()
	name, s := p.Name, p.Sample
	s.Body = body
	r := httptest.NewRequest(http.MethodPost, "/hooks/"+name, nil)
	target := *r.URL
	target.Scheme, target.Host = "http", r.Host
	draft, err := s.Copy(&target, "X1", secret, now, now, false)
	if err != nil {
		t.Fatal(err)
	}
	if draft.URL.RawQuery != "" {
		r = httptest.NewRequest(http.MethodPost, "/hooks/"+name+"?"+draft.URL.RawQuery, strings.NewReader(string(draft.Body)))
	} else {
		r = httptest.NewRequest(http.MethodPost, "/hooks/"+name, strings.NewReader(string(draft.Body)))
	}
	r.Header = draft.Header
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// TestB39: what a provider asks before it delivers, or beside, is
// answered as it wants, and leaves no trace. What only looks like it is not.
func TestB39(t *testing.T) {
	const discordSeed = "" // the sample's own key
	b := newBench(t, preset("slack", "s"), preset("zoom", "1234567890"), preset("discord", discordPublic(t)), preset("ifood", "s"), preset("github", "s"),
		preset("woocommerce", "s"), preset("woovi", "hmac-secret-key"), preset("vtex", "s"), whatsappSource)
	for _, test := range []struct {
		name    string
		request *http.Request
		status  int
		body    string
	}{
		{"slack", signedBy(t, "slack", "s", `{"type":"url_verification","challenge":"a\"b","token":"x"}`), 200, `{"challenge":"a\"b"}`},
		{
			"zoom", signedBy(t, "zoom", "1234567890", `{"event":"endpoint.url_validation","payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}}`), 200,
			`{"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"f07df50579f317831d1b457725e375c9ba3e624a23ff78b0c9b41934ced5b8c3"}`,
		},
		{"discord events", signedBy(t, "discord", discordSeed, `{"version":1,"application_id":"1","type":0}`), 204, ""},
		{"discord interactions", signedBy(t, "discord", discordSeed, `{"id":"1","application_id":"1","type":1}`), 200, `{"type":1}`},
		{"ifood", signedBy(t, "ifood", "s", `{"code":"KEEPALIVE","fullCode":"KEEPALIVE","id":"x"}`), 202, ""},
		{"github", signedBy(t, "github", "s", `{"zen":"x"}`, "X-GitHub-Event", "ping"), 200, ""},
		{"woocommerce", formPost("/hooks/woocommerce", "webhook_id=17"), 200, ""},
		{"woovi", jsonPost("/hooks/woovi", `{"data_criacao":"2021-08-10T20:32:14.429Z","evento":"teste_webhook"}`), 200, ""},
		{"vtex", jsonPost("/hooks/vtex", `{"hookConfig":"ping"}`), 200, ""},
		{"meta", httptest.NewRequest(http.MethodGet, "/hooks/wa?hub.mode=subscribe&hub.verify_token=meta&hub.challenge=1158201444", nil), 200, "1158201444"},

		{"slack unsigned", jsonPost("/hooks/slack", `{"type":"url_verification","challenge":"abc"}`), 401, ""},
		{"zoom unsigned", jsonPost("/hooks/zoom", `{"event":"endpoint.url_validation","payload":{"plainToken":"x"}}`), 401, ""},
		{"ifood unsigned", jsonPost("/hooks/ifood", `{"fullCode":"KEEPALIVE"}`), 401, ""},
		{"ping and more", formPost("/hooks/woocommerce", "webhook_id=17&order=1"), 401, ""},
		{"ping of no number", formPost("/hooks/woocommerce", "webhook_id=x"), 401, ""},
		{"event and token", jsonPost("/hooks/slack?validationToken=x", `{"event_id":"1"}`), 401, ""},
		{"woovi and more", jsonPost("/hooks/woovi", `{"data_criacao":"x","evento":"y","charge":{}}`), 401, ""},
		{"vtex and more", jsonPost("/hooks/vtex", `{"hookConfig":"ping","OrderId":"1"}`), 401, ""},
		{"meta, wrong token", httptest.NewRequest(http.MethodGet, "/hooks/wa?hub.mode=subscribe&hub.verify_token=other&hub.challenge=1", nil), 403, ""},
		{"meta, no token", httptest.NewRequest(http.MethodGet, "/hooks/wa?hub.mode=subscribe&hub.challenge=1", nil), 403, ""},
		{"meta, no challenge", httptest.NewRequest(http.MethodGet, "/hooks/wa", nil), 403, ""},
		{"no handshake", httptest.NewRequest(http.MethodGet, "/hooks/slack?hub.challenge=1", nil), 405, ""},
		{"head", httptest.NewRequest(http.MethodHead, "/hooks/wa", nil), 405, ""},
	} {
		w := b.send(test.request)
		wantStatus(t, w, test.status)
		if test.status < 300 && w.Body.String() != test.body {
			t.Errorf("%s: body %q, want %q", test.name, w.Body, test.body)
		}
		if w.Header().Get("Hookonce-Key") != "" {
			t.Errorf("%s names a key", test.name)
		}
	}
	if b.store.calls() != 0 || len(b.broker.offered) != 0 {
		t.Errorf("%d claims", b.store.calls())
	}
	for _, source := range []string{"slack", "zoom", "ifood", "github", "woocommerce", "woovi", "vtex", "wa"} {
		if b.count(t, source, "handshake") != 1 {
			t.Errorf("%s: %v handshakes counted", source, b.count(t, source, "handshake"))
		}
	}
	// Without a token configured nobody can subscribe.
	b = newBench(t, with(whatsappSource, func(s *receiver.Source) { s.Verify = receiver.Verify{} }))
	wantStatus(t, b.send(httptest.NewRequest(http.MethodGet, "/hooks/wa?hub.mode=subscribe&hub.verify_token=&hub.challenge=1", nil)), 403)
}

func jsonPost(path, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	return r
}

func formPost(path, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// TestAnswersAreTheProviders: a duplicate gets the code that the provider takes
// for success, and only that.
func TestAnswersAreTheProviders(t *testing.T) {
	b := newBench(t, preset("ifood", "s"), preset("asaas", "s"), preset("discord", discordPublic(t)), preset("twilio", "s"))
	for name, want := range map[string]struct {
		status int
		secret string
	}{"ifood": {202, "s"}, "asaas": {200, "s"}, "discord": {204, ""}, "twilio": {200, "s"}} {
		p, _ := provider.Lookup(name)
		for i := range 2 {
			w := b.send(signedBy(t, name, want.secret, p.Sample.Body))
			wantStatus(t, w, want.status)
			if (w.Header().Get("Idempotent-Replayed") != "") != (i == 1) {
				t.Errorf("%s, copy %d: %v", name, i, w.Header())
			}
			if name == "twilio" && (w.Body.String() != "<Response/>" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/xml")) {
				t.Errorf("twilio: %q %v", w.Body, w.Header())
			}
		}
	}
}

func discordPublic(t *testing.T) string {
	t.Helper()
	p, _ := provider.Lookup("discord")
	return strings.Trim(strings.TrimPrefix(p.Sample.Source, "secrets: ["), `" ]`)
}

// TestExpiringSecrets: an old secret counts until its end, and is counted; when
// none is left, the sender shall come again.
func TestExpiringSecrets(t *testing.T) {
	at := now
	b := newBenchWith(t, func(c *receiver.Config) { c.Now = func() time.Time { return at } },
		receiver.Source{Name: "s", Provider: "stripe", Secrets: []string{"new"}, Expiring: []provider.Secret{{Value: "old", Expires: now.Add(time.Hour)}}},
		receiver.Source{Name: "only", Provider: "stripe", Expiring: []provider.Secret{{Value: "old", Expires: now.Add(time.Hour)}}})
	post := func(path, secret string) *httptest.ResponseRecorder {
		body := []byte(`{"id":"evt_` + secret + `"}`)
		return b.post(path, string(body), "Stripe-Signature", signStripe(secret, at, body))
	}
	wantStatus(t, post("/hooks/s", "old"), 200)
	wantStatus(t, post("/hooks/s", "new"), 200)
	wantStatus(t, post("/hooks/only", "old"), 200)
	if got := counter(t, b.metrics.OldSecret.WithLabelValues("s")); got != 1 {
		t.Errorf("%v deliveries by the old secret", got)
	}
	at = at.Add(time.Hour)
	wantStatus(t, post("/hooks/s", "old"), 401)
	wantStatus(t, post("/hooks/s", "new"), 200)
	wantStatus(t, post("/hooks/only", "old"), 503)
	if !strings.Contains(b.logs.String(), "level=ERROR") || strings.Contains(b.logs.String(), "evt_old\"") {
		t.Errorf("the log does not shout: %s", b.logs)
	}
}

// TestB38IFood: two spellings are one event, keep-alives are answered and
// never published, and what cannot be taken now is asked for again with 503.
func TestB38IFood(t *testing.T) {
	b := newBench(t, receiver.Source{Name: "ifood", Provider: "ifood", Secrets: []string{"ifood_B38"}})
	tight := `{"code":"PLC","fullCode":"PLACED","id":"00000000-0000-4000-8000-0000000b3801","orderId":"00000000-0000-4000-8000-00000000aaaa"}`
	loose := strings.NewReplacer("{", "{ ", ",", ", ", "}", " }").Replace(tight)
	for body, sig := range map[string]string{
		tight: "c8349e81ef560f6fbd28df4264308400783327e357ad52e488db0877fca0b402",
		loose: "d19adb65386acb28e3bee3b9b2fc4c711e497063467718899dcf0692d91594f8",
	} {
		wantStatus(t, b.post("/hooks/ifood", body, "X-IFood-Signature", sig), 202)
	}
	for range 10 {
		w := b.post("/hooks/ifood", `{"code":"KEEPALIVE","fullCode":"KEEPALIVE","id":"00000000-0000-4000-8000-0000000b38ff"}`,
			"X-IFood-Signature", "50a1657b8937ea66bc4c39fc9ccc5adeba70e9a03638c24b024135bcaacd4d51")
		wantStatus(t, w, 202)
		if w.Header().Get("Idempotent-Replayed") != "" {
			t.Error("a keep-alive is called a duplicate")
		}
	}
	if len(b.broker.offered) != 1 || b.count(t, "ifood", "handshake") != 10 {
		t.Errorf("%d events, %v handshakes", len(b.broker.offered), b.count(t, "ifood", "handshake"))
	}
	b.store.before, b.broker.err = alwaysDown, errDown
	wantStatus(t, b.post("/hooks/ifood", tight, "X-IFood-Signature", "c8349e81ef560f6fbd28df4264308400783327e357ad52e488db0877fca0b402"), 503)
}

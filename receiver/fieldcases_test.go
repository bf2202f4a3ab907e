package receiver_test

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/receiver"
)

// The tests of this file are reports from the field; the names are their ids.

const (
	sigFirst = "add268875c77da0b0493b2ae7deba5dabc736b8c4b5a40755158e5471b4c3fe2"
	sigRetry = "20e7277c2d1c32349f22a23356f724319bf2d47433cb81e1fd7ab9cf7bd05066"
	bodyB01  = `{"z":1e2,"amount":10.00,"note":"caf\u00e9 \/ \u0026 \u003c","id":"evt_B01","type":"invoice.paid"}`
	sigB01   = "t=1700000000,v1=83551c142da1d11e98d982e32598b09c016d6722662eb3304c7b32b90470ef61"
)

// TestStripeRetry: a retry has another signature and the same event id.
func TestStripeRetry(t *testing.T) {
	const body = `{"id":"evt_test_webhook","object":"event","type":"payment_intent.succeeded"}`
	at := time.Unix(1492774577, 0)
	b := newBenchWith(t, func(c *receiver.Config) { c.Now = func() time.Time { return at } }, stripeSource)
	wantStatus(t, b.post("/hooks/stripe", body, "Stripe-Signature", "t=1492774577,v1="+sigFirst), 200)
	at = time.Unix(1492778177, 0)
	w := b.post("/hooks/stripe", body, "Stripe-Signature", "t=1492778177,v1="+sigRetry)
	wantStatus(t, w, 200)
	if w.Header().Get("Idempotent-Replayed") != "true" || w.Header().Get("Hookonce-Key") != "stripe/evt_test_webhook" {
		t.Errorf("headers %v", w.Header())
	}
	if len(b.broker.offered) != 1 {
		t.Errorf("%d events", len(b.broker.offered))
	}
	c := b.store.last(t)
	if c.Event.Type != "payment_intent.succeeded" || c.TTL != 45*24*time.Hour || c.Event.Header["Stripe-Signature"] != "" {
		t.Errorf("claim %+v", c)
	}
}

func TestB01(t *testing.T) {
	b := newBench(t, stripeSource)
	wantStatus(t, b.post("/hooks/stripe", bodyB01, "Stripe-Signature", sigB01), 200)
	if e := b.broker.offered[0].Event; string(e.Body) != bodyB01 || len(e.Body) != 97 || e.Key.String() != "stripe/evt_B01" {
		t.Errorf("event %s with body %s", e.Key, e.Body)
	}
	dumped := `{"amount":10,"id":"evt_B01","note":"café / \u0026 \u003c","type":"invoice.paid","z":100}`
	wantStatus(t, b.post("/hooks/stripe", dumped, "Stripe-Signature", sigB01), 401)
	if b.store.calls() != 1 {
		t.Error("the forged body reached the store")
	}
}

func TestB03(t *testing.T) {
	const (
		plain   = `{"type":"message.new","id":"B03-1"}`
		decoded = "11478d131f59aacde59ca74d93ec1ec5c581dfeae7b6858cb0dfcde5978290cd"
		onWire  = "4e52ef8625b5db0f9ed90d8f8a84fe56108d555575a5157ffbcbd08802cc1b68"
	)
	wire, err := hex.DecodeString("1f8b0800000000000203ab562aa92c4855b252ca4d2d2e4e4c4fd5cb4b2d57d251ca4c010a391918eb1a2ad502008b37877b23000000")
	if err != nil {
		t.Fatal(err)
	}
	source := receiver.Source{
		Name: "stream", Verify: receiver.Verify{Scheme: "hmac-sha256"}, Secrets: []string{"stream_B03"},
		Keys: []string{"json:id"}, Type: receiver.TypeRule{From: "json:type"},
	}
	gz := []string{"Content-Encoding", "gzip", "X-Signature"}
	b := newBench(t, source)
	wantStatus(t, b.post("/hooks/stream", string(wire), append(gz, onWire)...), 401)
	wantStatus(t, b.post("/hooks/stream", string(wire), "Content-Encoding", "br", "X-Signature", decoded), 415)
	wantStatus(t, b.post("/hooks/stream", string(wire), "Content-Encoding", "gzip, gzip", "X-Signature", decoded), 415)
	wantStatus(t, b.post("/hooks/stream", string(wire[:40]), append(gz, decoded)...), 400)
	wantStatus(t, b.post("/hooks/stream", plain, append(gz, decoded)...), 400)
	wantStatus(t, b.post("/hooks/stream", bomb(t, 50<<20), append(gz, decoded)...), 413)
	if b.store.calls() != 0 {
		t.Fatal("a refused body reached the store")
	}
	wantStatus(t, b.post("/hooks/stream", string(wire), append(gz, decoded)...), 200)
	e := b.store.last(t).Event
	if string(e.Body) != plain || e.Header["Content-Encoding"] != "" {
		t.Errorf("event %+v", e)
	}
	wantStatus(t, b.post("/hooks/stream", plain, "X-Signature", decoded, "Content-Encoding", "Identity"), 200)
	// A sender that signs what it compressed says so, and is believed only then.
	over := newBench(t, with(source, func(s *receiver.Source) { s.Verify.Over = "wire" }))
	wantStatus(t, over.post("/hooks/stream", string(wire), append(gz, decoded)...), 401)
	wantStatus(t, over.post("/hooks/stream", string(wire), append(gz, onWire)...), 200)
	wantStatus(t, over.post("/hooks/stream", plain, "X-Signature", decoded), 200)
	if w := b.postChunked("/hooks/stream", plain, "X-Signature", decoded); w.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("a chunked body is read differently")
	}
}

// bomb is a gzip body that grows to size zeros, made of members of 1 MiB each.
func bomb(t *testing.T, size int) string {
	const member = 1 << 20
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(make([]byte, member)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.Repeat(buf.String(), size/member)
}

func TestB05(t *testing.T) {
	const (
		sigOld  = "ff24a7ccd3c7b4a05a2cd5bea6e959055b056db31f4fa776b0c9b7a957f400e6"
		sigNew  = "4ffa12eff85208bdde7aee3b6c4040734ac4be2e3547524a6077483dc584df00"
		sigThin = "334fffabba20be499d411874564e023a6a10d0cc38207e519b8175e57f860e2c"
		body    = `{"id":"evt_B05","object":"event","type":"charge.succeeded"}`
		thin    = `{"id":"evt_test_B05thin","object":"v2.core.event","type":"v1.billing.meter.error_report_triggered","related_object":{"id":"mtr_1"}}`
	)
	b := newBench(t, receiver.Source{Name: "s", Provider: "stripe", Secrets: []string{"whsec_old_B05", "whsec_new_B05", "whsec_thin_B05"}})
	wantStatus(t, b.post("/hooks/s", body, "Stripe-Signature", "t=1700000000,v0="+sigNew), 401)
	for i, header := range []string{"v1=" + sigOld + ",v1=" + sigNew, "v1=" + sigNew, "v1=zz, v1=" + sigOld} {
		w := b.post("/hooks/s", body, "Stripe-Signature", "t=1700000000,"+header)
		wantStatus(t, w, 200)
		if replayed := w.Header().Get("Idempotent-Replayed") != ""; replayed != (i > 0) || w.Header().Get("Hookonce-Key") != "s/evt_B05" {
			t.Errorf("%s: %v", header, w.Header())
		}
	}
	wantStatus(t, b.post("/hooks/s", thin, "Stripe-Signature", "t=1700000000,v1="+sigThin), 200)
	if e := b.store.last(t).Event; e.Key.ID != "evt_test_B05thin" || e.Type != "v1.billing.meter.error_report_triggered" {
		t.Errorf("thin event %s of type %s", e.Key, e.Type)
	}
}

// githubLike is a source keyed by a header, as GitHub's deliveries are.
func githubLike(name, secret string) receiver.Source {
	return receiver.Source{
		Name: name, Secrets: []string{secret},
		Verify: receiver.Verify{Scheme: "hmac-sha256", Header: "X-Hub-Signature-256", Prefix: "sha256="},
		Keys:   []string{"header:X-GitHub-Delivery"}, Type: receiver.TypeRule{From: "json:action"},
	}
}

// TestB07: without its id a verified event is refused, never run without a key.
func TestB07(t *testing.T) {
	b := newBench(t, githubLike("gh", "gh_B07"))
	sig := []string{"X-Hub-Signature-256", "sha256=7d983fa72f53f66af011dd86dd3804678ce0ce61e5db58cf681df2b3414d168e"}
	const body = `{"action":"labeled","number":7}`
	wantStatus(t, b.post("/hooks/gh", body, sig...), 400)
	wantStatus(t, b.post("/hooks/gh", body, append(sig, "X-GitHub-Delivery", "")...), 400)
	wantStatus(t, b.post("/hooks/gh", body, append(sig, "X-GitHub-Delivery", " ")...), 400)
	if b.store.calls() != 0 {
		t.Error("a request without a key reached the store")
	}
	wantStatus(t, b.post("/hooks/gh", body, append(sig, "X-GitHub-Delivery", "g-1")...), 200)
}

// TestB08a: the key holds the source.
func TestB08a(t *testing.T) {
	b := newBench(t, githubLike("gh-a", "hookA_B08"), githubLike("gh-b", "hookB_B08"))
	id := []string{"X-GitHub-Delivery", "11111111-1111-4111-8111-111111111111", "X-Hub-Signature-256"}
	wantStatus(t, b.post("/hooks/gh-a", `{"action":"opened","installation":{"id":1}}`,
		append(id, "sha256=9a11468de9eff0b194b7563a495add576631aa646698c5c369b22cecf8b31864")...), 200)
	w := b.post("/hooks/gh-b", `{"action":"opened","installation":{"id":2}}`,
		append(id, "sha256=55ffea20f7da7c66970dcda13edb6c0724c4e4f81c6b38eb1a4e289b71e289d8")...)
	wantStatus(t, w, 200)
	if w.Header().Get("Idempotent-Replayed") != "" || len(b.broker.offered) != 2 {
		t.Error("another source's event was taken for a duplicate")
	}
}

// TestB12e: a recipe with a null part is absent, not half a key.
func TestB12e(t *testing.T) {
	b := newBench(t, with(demoSource, func(s *receiver.Source) { s.Keys = []string{"json:{project}:{checkout_sha}", "json:{project}:{ref}"} }))
	for _, ref := range []string{"x", "y"} {
		w := b.post("/hooks/demo", `{"project":"p","checkout_sha":null,"ref":"`+ref+`"}`)
		if w.Header().Get("Hookonce-Key") != "demo/p:"+ref || w.Header().Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %v", ref, w.Header())
		}
	}
}

func TestB15(t *testing.T) {
	source := with(demoSource, func(s *receiver.Source) { s.Keys = []string{"json:id"} })
	b := newBench(t, source)
	wantStatus(t, b.post("/hooks/demo", `{"id":"evt_A","type":"t","id":"evt_B"}`), 400)
	for i, body := range []string{`{"id":"evt_A","ID":"evt_B","type":"t"}`, `{"id":"evt_A","type":"t"}`} {
		w := b.post("/hooks/demo", body)
		if w.Header().Get("Hookonce-Key") != "demo/evt_A" || (w.Header().Get("Idempotent-Replayed") != "") != (i == 1) {
			t.Errorf("%s: %v", body, w.Header())
		}
	}
	// Also where the key itself comes from a header.
	b = newBench(t, githubLike("gh", "gh_B15"))
	wantStatus(t, b.post("/hooks/gh", `{"id":"evt_A","type":"t","id":"evt_B"}`, "X-GitHub-Delivery", "g-1",
		"X-Hub-Signature-256", "sha256=aac669b9506ec887c842c1dd8367a9ac4c5b9a7aa44ad04fead0c6cce1934f8e"), 400)
	if b.store.calls() != 0 {
		t.Error("a body with two readings reached the store")
	}
}

func TestB16(t *testing.T) {
	b := newBench(t, with(demoSource, func(s *receiver.Source) { s.Keys = []string{"json:id"} }))
	for _, test := range []struct{ literal, key string }{
		{"9007199254740992", "9007199254740992"},
		{"9007199254740993", "9007199254740993"},
		{"123456789", "123456789"},
		{"1.0", "1.0"},
		{"1", "1"},
		{"-0", "-0"},
	} {
		w := b.post("/hooks/demo", `{"id":`+test.literal+`}`)
		if w.Header().Get("Hookonce-Key") != "demo/"+test.key || w.Header().Get("Idempotent-Replayed") != "" {
			t.Errorf("%s: %v", test.literal, w.Header())
		}
	}
	if w := b.post("/hooks/demo", `{"id":"123456789"}`); w.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("a number and the text of its digits are one key")
	}
}

func TestB17(t *testing.T) {
	const body = "\xef\xbb\xbf" + `{"value":[{"subscriptionId":"s-1","resource":"list-1"}]}`
	b := newBench(t, receiver.Source{
		Name: "sp", Verify: receiver.Verify{Scheme: "hmac-sha256"}, Secrets: []string{"sp_B17"},
		Keys: []string{"json:{value.0.subscriptionId}:{value.0.resource}"},
	}, receiver.Source{Name: "form", Verify: receiver.Verify{Scheme: "none"}, Keys: []string{"form:a"}})
	wantStatus(t, b.post("/hooks/sp", body, "X-Signature", "c50fafbce5eba2b46892888405a696d9ab3e832d7126f72826a35b4626c8985c"), 401)
	wantStatus(t, b.post("/hooks/sp", body, "X-Signature", "7dabaf3ce64d366801bd3747575ffe93e943bad2e8ad88789447d05b5cf43375"), 200)
	if e := b.store.last(t).Event; string(e.Body) != body || e.Key.ID != "s-1:list-1" {
		t.Errorf("event %s with body %q", e.Key, e.Body)
	}
	w := b.post("/hooks/form", "\xef\xbb\xbfa=1&b=2", "Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if w.Header().Get("Hookonce-Key") != "form/1" {
		t.Errorf("form: %v %s", w.Header(), w.Body)
	}
	wantStatus(t, b.post("/hooks/demo-utf16", "x"), 404)
}

func TestB19(t *testing.T) {
	source := with(demoSource, func(s *receiver.Source) { s.Keys = []string{"json:id"} })
	for _, body := range []string{
		"null", "[]", `"x"`, "42", "", "{}", `{"id":null}`, `{"id":""}`, `{"id":" "}`, `{"id":{"x":1}}`, `{"id":["x"]}`,
		`{"id":"a"}{"id":"b"}`, "payload=%7B%22action%22%3A%22opened%22%7D", "\xff\xfe{\x00}\x00", "\x00", strings.Repeat("[", 100000),
	} {
		for _, media := range []string{"application/json; charset=utf-8", "application/vnd.api+json", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ";;"} {
			b := newBench(t, source)
			wantStatus(t, b.post("/hooks/demo", body, "Content-Type", media), 400)
			if b.store.calls() != 0 {
				t.Errorf("%.20q reached the store", body)
			}
		}
	}
	for _, media := range []string{"application/json; charset=utf-8", "application/vnd.api+json", "text/plain", "", "application/x-www-form-urlencoded"} {
		b := newBench(t, source)
		wantStatus(t, b.post("/hooks/demo", ` {"id":"a","type":"t"}`, "Content-Type", media), 200)
		if e := b.store.last(t).Event; e.ContentType != media || e.Type != "t" {
			t.Errorf("%s: event %+v", media, e)
		}
	}
}

// TestB20: limits in bytes, with and without a length in advance.
func TestB20(t *testing.T) {
	const limit = 200 << 10
	b := newBenchWith(t, func(c *receiver.Config) { c.MaxBody = limit }, demoSource)
	for i, size := range []int{limit - 1, limit, limit + 1} {
		body := strings.Repeat("x", size)
		status := http.StatusOK
		if size > limit {
			status = http.StatusRequestEntityTooLarge
		}
		wantStatus(t, b.post("/hooks/demo", body, "Idempotency-Key", fmt.Sprint("a", i)), status)
		wantStatus(t, b.postChunked("/hooks/demo", body, "Idempotency-Key", fmt.Sprint("b", i)), status)
	}
	if b.store.calls() != 4 || len(b.store.last(t).Event.Body) != limit {
		t.Errorf("%d claims", b.store.calls())
	}
}

// TestB38: a duplicate gets the source's own success code; spelling does not matter.
func TestB38(t *testing.T) {
	b := newBench(t, receiver.Source{
		Name: "ifood", Verify: receiver.Verify{Scheme: "hmac-sha256", Header: "X-IFood-Signature"}, Secrets: []string{"ifood_B38"},
		Keys: []string{"json:id"}, Type: receiver.TypeRule{From: "json:fullCode"}, Respond: receiver.Respond{Status: 202}, Accept: []string{"PLACED"},
	})
	tight := `{"code":"PLC","fullCode":"PLACED","id":"00000000-0000-4000-8000-0000000b3801","orderId":"00000000-0000-4000-8000-00000000aaaa"}`
	loose := strings.NewReplacer("{", "{ ", ",", ", ", "}", " }").Replace(tight)
	wantStatus(t, b.post("/hooks/ifood", tight, "X-IFood-Signature", "c8349e81ef560f6fbd28df4264308400783327e357ad52e488db0877fca0b402"), 202)
	wantStatus(t, b.post("/hooks/ifood", loose, "X-IFood-Signature", "d19adb65386acb28e3bee3b9b2fc4c711e497063467718899dcf0692d91594f8"), 202)
	for range 10 {
		wantStatus(t, b.post("/hooks/ifood", `{"code":"KEEPALIVE","fullCode":"KEEPALIVE","id":"00000000-0000-4000-8000-0000000b38ff"}`,
			"X-IFood-Signature", "50a1657b8937ea66bc4c39fc9ccc5adeba70e9a03638c24b024135bcaacd4d51"), 202)
	}
	if len(b.broker.offered) != 1 || b.store.calls() != 2 || b.count(t, "ifood", "filtered") != 10 {
		t.Errorf("%d events, %d claims", len(b.broker.offered), b.store.calls())
	}
}

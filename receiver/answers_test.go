package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/receiver"
)

const order = `{"type":"order.paid","order_id":"A-1","email":"ana@example.com"}`

// TestAnswers: every answer, its outcome in the metrics, and whether the store
// was asked.
func TestAnswers(t *testing.T) {
	long := strings.Repeat("k", hookonce.MaxKey+1)
	tests := []struct {
		name    string
		change  func(*receiver.Source)
		store   error
		body    string
		headers []string
		status  int
		outcome string
		claims  int
	}{
		{name: "accepted", body: order, status: 200, outcome: "accepted", claims: 1},
		{name: "accepted with own answer", body: order, status: 202, outcome: "accepted", claims: 1, change: func(s *receiver.Source) {
			s.Respond = receiver.Respond{Status: 202, Body: "ok"}
		}},
		{name: "key in header, body no JSON", body: "plain", headers: []string{"Idempotency-Key", "k"}, status: 200, outcome: "accepted", claims: 1},
		{name: "filtered", body: order, status: 200, outcome: "filtered", change: func(s *receiver.Source) { s.Accept = []string{"invoice.*"} }},
		{name: "accept", body: order, status: 200, outcome: "accepted", claims: 1, change: func(s *receiver.Source) { s.Accept = []string{"invoice.*", "order.#"} }},
		{name: "no key", body: `{"type":"x"}`, status: 400, outcome: "rejected_invalid"},
		{name: "parked", body: `{"type":"x"}`, status: 200, outcome: "parked", claims: 1, change: func(s *receiver.Source) { s.OnNoKey = "park" }},
		{name: "unreadable", body: `{"order_id":"A-1"`, status: 400, outcome: "rejected_invalid"},
		{name: "unreadable by type", body: `"A-1`, headers: []string{"Content-Type", "application/json", "Idempotency-Key", "k"}, status: 400, outcome: "rejected_invalid"},
		{name: "duplicate name", body: `{"order_id":"A","order_id":"B"}`, status: 400, outcome: "rejected_invalid"},
		{name: "nested too deep", body: strings.Repeat("[", 600) + strings.Repeat("]", 600), headers: []string{"Idempotency-Key", "k"}, status: 400, outcome: "rejected_invalid"},
		{name: "key too long", body: order, headers: []string{"Idempotency-Key", long}, status: 400, outcome: "rejected_invalid"},
		{name: "longest key", body: order, headers: []string{"Idempotency-Key", long[1:]}, status: 200, outcome: "accepted", claims: 1},
		{name: "type too long", body: `{"type":"` + long + `","order_id":"1"}`, status: 400, outcome: "rejected_invalid"},
		{name: "headers too large", body: order, headers: []string{"X-Large", strings.Repeat("x", 64<<10)}, status: 431, outcome: "rejected_invalid"},
		{name: "body too large", body: `{"order_id":"` + strings.Repeat("x", 2000) + `"}`, status: 413, outcome: "rejected_invalid"},
		{name: "encoding", body: order, headers: []string{"Content-Encoding", "br"}, status: 415, outcome: "rejected_invalid"},
		{name: "signature missing", body: order, status: 401, outcome: "rejected_signature", change: signed},
		{name: "signature wrong", body: order, headers: []string{"X-Signature", strings.Repeat("0", 64)}, status: 401, outcome: "rejected_signature", change: signed},
		{name: "store refuses", body: order, store: fmt.Errorf("nul: %w", hookonce.ErrInvalid), status: 400, outcome: "rejected_invalid", claims: 1},
		{name: "outbox full", body: order, store: hookonce.ErrOutboxFull, status: 503, outcome: "unavailable", claims: 1},
		{name: "store down, reject", body: order, store: errors.New("down"), status: 503, outcome: "unavailable", claims: 2, change: func(s *receiver.Source) { s.OnStoreDown = "reject" }},
		{name: "store down, publish", body: order, store: errors.New("down"), status: 200, outcome: "accepted", claims: 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			source := demoSource
			if test.change != nil {
				test.change(&source)
			}
			b := newBenchWith(t, func(c *receiver.Config) { c.MaxBody = 1500 }, source)
			if test.body == "" || len(test.body) > 5000 {
				b = newBench(t, source)
			}
			b.store.before = func(context.Context, int) error { return test.store }
			w := b.post("/hooks/demo", test.body, test.headers...)
			wantStatus(t, w, test.status)
			if got := b.count(t, "demo", test.outcome); got != 1 {
				t.Errorf("%s was counted %v times", test.outcome, got)
			}
			if b.store.calls() != test.claims {
				t.Errorf("%d claims, want %d", b.store.calls(), test.claims)
			}
			if test.outcome == "accepted" && w.Header().Get("Hookonce-Key") == "" {
				t.Error("no Hookonce-Key")
			}
			if w.Header().Get("Idempotent-Replayed") != "" {
				t.Error("replayed")
			}
		})
	}
}

func signed(s *receiver.Source) {
	s.Verify = receiver.Verify{Scheme: "hmac-sha256"}
	s.Secrets = []string{"topsecret"}
}

// TestRoutes: exact paths, POST only, never a redirect.
func TestRoutes(t *testing.T) {
	b := newBench(t, demoSource, with(demoSource, func(s *receiver.Source) { s.Name, s.Path = "other", "/legacy/hook.php" }))
	wantStatus(t, b.post("/legacy/hook.php", order), 200)
	for _, path := range []string{"/hooks/demo/", "/hooks/other", "/hooks/Demo", "/", "/hooks//demo", "/hooks/nobody"} {
		wantStatus(t, b.post(path, order), 404)
	}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodOptions, http.MethodDelete} {
		w := b.send(httptest.NewRequest(method, "/hooks/demo", nil))
		wantStatus(t, w, 405)
		if w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: Allow %q", method, w.Header().Get("Allow"))
		}
	}
	if b.store.calls() != 1 {
		t.Errorf("%d claims", b.store.calls())
	}
}

// TestDuplicate: the first answer, with the mark, and nothing published.
func TestDuplicate(t *testing.T) {
	b := newBench(t, with(demoSource, func(s *receiver.Source) { s.Respond = receiver.Respond{Status: 202, Body: `{"ok":true}`} }))
	first := b.post("/hooks/demo", order)
	wantStatus(t, first, 202)

	// What the source answers today does not matter to a duplicate.
	again := newBench(t, demoSource)
	again.store.first = b.store.first
	for _, w := range []*httptest.ResponseRecorder{b.post("/hooks/demo", order), again.post("/hooks/demo", order+" ")} {
		wantStatus(t, w, 202)
		if w.Body.String() != first.Body.String() {
			t.Errorf("body %q", w.Body)
		}
		for _, name := range []string{"Content-Type", "Hookonce-Key"} {
			if w.Header().Get(name) != first.Header().Get(name) {
				t.Errorf("%s: %q, first %q", name, w.Header().Get(name), first.Header().Get(name))
			}
		}
		if w.Header().Get("Idempotent-Replayed") != "true" {
			t.Error("not marked as replayed")
		}
	}
	if first.Header().Get("Hookonce-Key") != "demo/A-1" || first.Header().Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", first.Header())
	}
	if len(b.broker.offered) != 1 || len(again.broker.offered) != 0 || len(again.broker.published) != 0 {
		t.Error("a duplicate was published")
	}
	if !strings.Contains(again.logs.String(), "changed_body=true") || strings.Contains(b.logs.String(), "changed_body") {
		t.Error("the changed body is not in the log, or an equal one is")
	}
}

func TestChangedBodyRejected(t *testing.T) {
	b := newBench(t, with(demoSource, func(s *receiver.Source) { s.OnChangedBody = "reject" }))
	wantStatus(t, b.post("/hooks/demo", order), 200)
	wantStatus(t, b.post("/hooks/demo", order+" "), 422)
	w := b.post("/hooks/demo", order)
	wantStatus(t, w, 200)
	if w.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("an equal body is a duplicate")
	}
}

// TestStoredAnswerUnusable: an answer that cannot be sent gives way to the
// source's own.
func TestStoredAnswerUnusable(t *testing.T) {
	b := newBench(t, demoSource)
	wantStatus(t, b.post("/hooks/demo", order), 200)
	for _, answer := range []hookonce.Answer{{}, {Status: 500}, {Status: 204, Body: "x"}} {
		c := b.store.first["demo/A-1"]
		c.Answer = answer
		b.store.first["demo/A-1"] = c
		wantStatus(t, b.post("/hooks/demo", order), 200)
	}
}

// TestKeyHeader: the key is escaped in the header.
func TestKeyHeader(t *testing.T) {
	b := newBench(t, demoSource)
	w := b.post("/hooks/demo", `{"order_id":"a/b é\n%"}`)
	wantStatus(t, w, 200)
	if got := w.Header().Get("Hookonce-Key"); got != "demo/a%2Fb%20%C3%A9%0A%25" {
		t.Errorf("Hookonce-Key %q", got)
	}
}

// TestNoKeyNamesAlternatives says what was tried.
func TestNoKeyNamesAlternatives(t *testing.T) {
	w := newBench(t, demoSource).post("/hooks/demo", `{}`)
	wantStatus(t, w, 400)
	if !strings.Contains(w.Body.String(), "header:Idempotency-Key, json:order_id") {
		t.Errorf("%s", w.Body)
	}
}

// TestNothingSecret: neither answers nor logs show secrets, signatures or bodies.
func TestNothingSecret(t *testing.T) {
	b := newBench(t, with(demoSource, signed))
	sig := strings.Repeat("ab", 32)
	b.store.before = func(context.Context, int) error { panic("store broke") }
	answers := b.post("/hooks/demo", order, "X-Signature", sig, "Authorization", "Bearer tok").Body.String() +
		b.post("/hooks/demo", order).Body.String()
	for _, secret := range []string{"topsecret", sig, "ana@example.com", "Bearer"} {
		if strings.Contains(answers+b.logs.String(), secret) {
			t.Errorf("%q is shown", secret)
		}
	}
	if !strings.Contains(b.logs.String(), "signature missing") || !strings.Contains(b.logs.String(), "does not match") {
		t.Errorf("the log does not tell the reasons apart: %s", b.logs)
	}
	if strings.Contains(answers, "missing") || strings.Contains(answers, "does not match") {
		t.Error("the answer does")
	}
}

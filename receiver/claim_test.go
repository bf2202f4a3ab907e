package receiver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/receiver"
)

var errDown = errors.New("connection refused")

// TestLostAnswer: a claim whose answer got lost is asked again with the same
// token, and is then new.
func TestLostAnswer(t *testing.T) {
	b := newBench(t, demoSource)
	b.store.before = func(_ context.Context, n int) error {
		if n == 1 {
			b.store.claim(b.store.claims[0])
			return errDown
		}
		return nil
	}
	w := b.post("/hooks/demo", order)
	wantStatus(t, w, 200)
	if w.Header().Get("Idempotent-Replayed") != "" || len(b.broker.offered) != 1 || len(b.broker.published) != 0 {
		t.Error("the own claim was taken for a duplicate")
	}
}

// TestStoreDown: published with the broker's confirm, or 503.
func TestStoreDown(t *testing.T) {
	down := func(context.Context, int) error { return errDown }
	b := newBench(t, demoSource)
	b.store.before = down
	w := b.post("/hooks/demo", order)
	wantStatus(t, w, 200)
	if len(b.broker.published) != 1 || len(b.broker.offered) != 0 || w.Header().Get("Hookonce-Key") != "demo/A-1" {
		t.Fatalf("%d published, headers %v", len(b.broker.published), w.Header())
	}
	if e := b.broker.published[0]; e.Key.ID != "A-1" || string(e.Body) != order {
		t.Errorf("published %+v", e)
	}
	b.broker.err = errDown
	wantStatus(t, b.post("/hooks/demo", order), 503)

	b = newBenchWith(t, func(c *receiver.Config) { c.Publisher = nil }, demoSource)
	b.store.before = down
	wantStatus(t, b.post("/hooks/demo", order), 503)

	// Where only the store can tell, nothing goes out without it.
	b = newBench(t, with(demoSource, func(s *receiver.Source) { s.Keys = []string{"body"} }))
	b.store.before = down
	wantStatus(t, b.post("/hooks/demo", order), 503)
	if len(b.broker.published) != 0 {
		t.Error("a body key was published without the store")
	}
}

// TestB25: the sender hangs up while the claim is made; the claim is made and
// its event is published all the same.
func TestB25(t *testing.T) {
	for _, confirm := range []bool{false, true} {
		b := newBench(t, with(demoSource, func(s *receiver.Source) {
			if confirm {
				s.Ack = "confirm"
			}
		}))
		ctx, hangUp := context.WithCancel(t.Context())
		b.store.before = func(ctx context.Context, _ int) error {
			hangUp()
			if _, ok := ctx.Deadline(); !ok {
				t.Error("the claim has no deadline")
			}
			return ctx.Err()
		}
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/hooks/demo", strings.NewReader(order))
		wantStatus(t, b.send(r), 200)
		if len(b.store.first) != 1 || len(b.broker.offered)+len(b.broker.confirmed) != 1 {
			t.Errorf("confirm %v: %d claimed, %d offered, %d confirmed", confirm, len(b.store.first), len(b.broker.offered), len(b.broker.confirmed))
		}
		b.store.before = nil
		if w := b.post("/hooks/demo", order); w.Header().Get("Idempotent-Replayed") != "true" {
			t.Error("the retry is no duplicate")
		}
	}
}

// TestConfirm: no success before the broker's confirm, for a duplicate either.
func TestConfirm(t *testing.T) {
	b := newBench(t, with(demoSource, func(s *receiver.Source) { s.Ack = "confirm" }))
	b.broker.err = errDown
	wantStatus(t, b.post("/hooks/demo", order), 503)
	if len(b.broker.offered) != 1 {
		t.Error("the relay did not get what could not be confirmed")
	}
	wantStatus(t, b.post("/hooks/demo", order), 503)
	b.broker.err = nil
	w := b.post("/hooks/demo", order)
	wantStatus(t, w, 200)
	if w.Header().Get("Idempotent-Replayed") != "true" || len(b.broker.published) != 1 {
		t.Errorf("%d published, headers %v", len(b.broker.published), w.Header())
	}
	wantStatus(t, b.post("/hooks/demo", strings.Replace(order, "A-1", "A-2", 1)), 200)
	if len(b.broker.confirmed) != 1 || len(b.broker.offered) != 1 {
		t.Error("a new event is confirmed, not offered")
	}
	// What the broker has confirmed is not published again, however often it comes.
	for _, id := range []string{"A-1", "A-2", "A-1", "A-2"} {
		wantStatus(t, b.post("/hooks/demo", strings.Replace(order, "A-1", id, 1)), 200)
	}
	if len(b.broker.published) != 1 || len(b.broker.confirmed) != 1 {
		t.Errorf("duplicates were published: %d, %d", len(b.broker.published), len(b.broker.confirmed))
	}

	// The embedded queue has the event once it is claimed.
	b = newBenchWith(t, func(c *receiver.Config) { c.Relay, c.Publisher, c.Confirmer = nil, nil, nil },
		with(demoSource, func(s *receiver.Source) { s.Ack = "confirm" }))
	wantStatus(t, b.post("/hooks/demo", order), 200)
	wantStatus(t, b.post("/hooks/demo", order), 200)
}

// TestParked: without a key, set aside once under the body's hash.
func TestParked(t *testing.T) {
	b := newBench(t, with(demoSource, func(s *receiver.Source) { s.OnNoKey = "park" }))
	w := b.post("/hooks/demo", `{"x":1}`)
	wantStatus(t, w, 200)
	e := b.broker.offered[0].Event
	if e.Parked != "no key" || e.Key.ID != "!5041bf1f713df204784353e82f6a4a535931cb64f1f4b4a5aeaffcb720918b22" {
		t.Errorf("event %+v", e)
	}
	if got := w.Header().Get("Hookonce-Key"); got != e.Key.Escaped() {
		t.Errorf("Hookonce-Key %q", got)
	}
	if w := b.post("/hooks/demo", `{"x":1}`); w.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("a resend is parked again")
	}
}

// TestB11: equal bodies are one event within the window and two across it; the
// consumer can tell them apart.
func TestB11(t *testing.T) {
	b := newBench(t, receiver.Source{
		Name: "mollie", Verify: receiver.Verify{Scheme: "none"}, Keys: []string{"body"}, Body: receiver.BodyKey{Window: time.Minute},
	})
	keys := map[string]bool{}
	for i, body := range []string{"id=tr_B11exampl", "id=tr_B11exampl", "id=tr_B11exampl", "", ""} {
		if i == 2 {
			clear(b.store.first) // the window is over
		}
		w := b.post("/hooks/mollie", body)
		wantStatus(t, w, 200)
		keys[w.Header().Get("Hookonce-Key")] = true
		c := b.store.last(t)
		if c.TTL != time.Minute || c.Lookup == nil || !strings.HasPrefix(c.Event.Key.ID, c.Lookup.ID+"~") || !strings.HasPrefix(c.Lookup.ID, "sha256:") {
			t.Errorf("claim of %s looks up %v for %s", c.Event.Key, c.Lookup, c.TTL)
		}
	}
	if len(keys) != 3 || len(b.broker.offered) != 3 {
		t.Errorf("%d keys, %d events", len(keys), len(b.broker.offered))
	}
}

func TestCanonicalBody(t *testing.T) {
	b := newBench(t, receiver.Source{
		Name: "legacy", Verify: receiver.Verify{Scheme: "none"}, Keys: []string{"header:Idempotency-Key", "body"},
		Body: receiver.BodyKey{Canonical: true, Ignore: []string{"sent_at", "list.0.try", "list.7"}},
	})
	key := func(body string) string {
		w := b.post("/hooks/legacy", body)
		wantStatus(t, w, 200)
		return w.Header().Get("Hookonce-Key")
	}
	first := key(`{"id":1.0,"name":"é","sent_at":1,"list":[{"try":1},2]}`)
	for _, same := range []string{
		`{ "name":"\u00e9", "id":1.0, "list":[{"try":2},2], "sent_at":[9] }`,
		"\xef\xbb\xbf" + `{"id":1.0,"name":"é","list":[{},2]}`,
	} {
		if key(same) != first {
			t.Errorf("%s is another event", same)
		}
	}
	for _, other := range []string{`{"id":1,"name":"é","list":[{},2]}`, `{"id":1.0,"name":"é","list":[{},2,3]}`, `not json`, `{"broken`} {
		if key(other) == first {
			t.Errorf("%s is the same event", other)
		}
	}
	if c := b.store.last(t); c.TTL != 10*time.Minute {
		t.Errorf("window %s", c.TTL)
	}
}

// TestBusy: over the bound nothing is read; below it again everything works.
func TestBusy(t *testing.T) {
	b := newBenchWith(t, func(c *receiver.Config) { c.MaxInWork = 1 }, demoSource)
	inside, goOn := make(chan struct{}), make(chan struct{})
	b.store.before = func(context.Context, int) error {
		close(inside)
		<-goOn
		return nil
	}
	done := make(chan int)
	go func() { done <- b.post("/hooks/demo", order).Code }()
	<-inside
	w := b.send(httptest.NewRequest(http.MethodPost, "/hooks/demo", unread{t}))
	wantStatus(t, w, 503)
	if b.count(t, "demo", "shed") != 1 {
		t.Error("not counted as shed")
	}
	close(goOn)
	if code := <-done; code != 200 {
		t.Errorf("the first request: %d", code)
	}
	b.store.before = nil
	wantStatus(t, b.post("/hooks/demo", order), 200)
}

// unread is a body that nobody may read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of a shed request was read")
	return 0, errDown
}

// TestPanic: a broken store does not end the process or tell the sender why.
func TestPanic(t *testing.T) {
	b := newBenchWith(t, func(c *receiver.Config) { c.MaxInWork = 1 }, demoSource)
	b.store.before = func(context.Context, int) error { panic("broken store") }
	for range 2 { // the first one left its place in the bound
		w := b.post("/hooks/demo", order)
		wantStatus(t, w, 500)
		if strings.Contains(w.Body.String(), "broken") {
			t.Error("the answer tells of the panic")
		}
	}
	if !strings.Contains(b.logs.String(), "broken store") || strings.Contains(b.logs.String(), "ana@example.com") {
		t.Error("the log lacks the panic, or shows the body")
	}
}

// TestStoreAnswersNonsense: no outcome is not "new".
func TestStoreAnswersNonsense(t *testing.T) {
	for _, claimed := range []hookonce.Claimed{{}, {Outcome: hookonce.New, Err: hookonce.ErrUnknown}} {
		rc, err := receiver.New(receiver.Config{Sources: []receiver.Source{demoSource}, Store: constantStore(claimed)})
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		rc.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/hooks/demo", strings.NewReader(order)))
		wantStatus(t, w, 503)
	}
}

type constantStore hookonce.Claimed

func (s constantStore) ClaimOne(context.Context, hookonce.Claim) (hookonce.Claimed, error) {
	return hookonce.Claimed(s), nil
}

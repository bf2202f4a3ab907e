package receiver_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/receiver"
)

// TestPreviousKeys: an event that was taken under an older recipe's key is a
// duplicate under the new one, and the other way round.
func TestPreviousKeys(t *testing.T) {
	b := newBench(t, demoSource)
	wantStatus(t, b.post("/hooks/demo", order), 200) // under the old recipe

	renewed := with(demoSource, func(s *receiver.Source) {
		s.Keys, s.Type.From = []string{"header:X-Event-Id"}, "=order.paid"
		s.PreviousKeys = []string{"header:Idempotency-Key", "json:order_id", "header:X-Event-Id"}
	})
	old, store := b, b.store
	b = newBenchWith(t, func(c *receiver.Config) { c.Store = store }, renewed)
	w := b.post("/hooks/demo", order, "X-Event-Id", "e-1")
	wantStatus(t, w, 200)
	if w.Header().Get("Idempotent-Replayed") != "true" || w.Header().Get("Hookonce-Key") != "demo/A-1" {
		t.Errorf("an event known under its old key: headers %v", w.Header())
	}

	other := strings.Replace(order, "A-1", "A-2", 1)
	wantStatus(t, b.post("/hooks/demo", other, "X-Event-Id", "e-2", "Idempotency-Key", "i-2"), 200)
	want := []hookonce.Key{{Source: "demo", ID: "i-2"}, {Source: "demo", ID: "A-2"}}
	if c := store.last(t); c.Event.Key.ID != "e-2" || !slices.Equal(c.Previous, want) {
		t.Errorf("claimed %s with previous %v", c.Event.Key, c.Previous)
	}
	if w := old.post("/hooks/demo", other); w.Header().Get("Idempotent-Replayed") != "true" {
		t.Error("a receiver with the old recipe takes the event for a new one")
	}

	// What an older recipe looks for may be missing altogether, the document too.
	for i, body := range []string{"", "no json", `{"broken`} {
		w := b.post("/hooks/demo", body, "X-Event-Id", string(rune('a'+i)))
		wantStatus(t, w, 200)
		if c := store.last(t); len(c.Previous) != 0 {
			t.Errorf("%q: previous %v", body, c.Previous)
		}
	}
}

// TestPreviousKeysStoreDown: the consumer cannot know older keys, so nothing is
// published past the store.
func TestPreviousKeysStoreDown(t *testing.T) {
	b := newBench(t, with(demoSource, func(s *receiver.Source) { s.PreviousKeys = []string{"json:type"} }))
	b.store.before = func(context.Context, int) error { return errDown }
	wantStatus(t, b.post("/hooks/demo", order), 503)
	if len(b.broker.published) != 0 {
		t.Error("published without the store")
	}
	wantStatus(t, b.post("/hooks/demo", `{"order_id":"A-9"}`), 200) // no older key in it
}

// TestKeys: what makes a source's keys is told with the preset's values.
func TestKeys(t *testing.T) {
	rc, err := receiver.New(receiver.Config{Store: constantStore{}, Sources: []receiver.Source{
		stripeSource, demoSource,
		{Name: "legacy", Verify: receiver.Verify{Scheme: "none"}, Keys: []string{"header:X", "body"}},
		{
			Name: "sorted", Verify: receiver.Verify{Scheme: "none"}, Keys: []string{"body"},
			Body: receiver.BodyKey{Canonical: true, Ignore: []string{"sent_at", "a.b"}},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	keys := rc.Keys()
	for source, want := range map[string]string{
		"stripe": "json:id", "demo": "header:Idempotency-Key, json:order_id",
		"legacy": "header:X, body", "sorted": "body canonical -sent_at -a.b",
	} {
		if got := strings.Join(keys[source], ", "); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
	_, err = receiver.New(receiver.Config{Store: constantStore{}, Sources: []receiver.Source{
		with(demoSource, func(s *receiver.Source) { s.PreviousKeys = []string{"body"} }),
	}})
	if err == nil || !strings.Contains(err.Error(), "previous_keys") {
		t.Errorf("body among the previous keys: %v", err)
	}
	_, err = receiver.New(receiver.Config{Store: constantStore{}, Sources: []receiver.Source{
		with(demoSource, func(s *receiver.Source) { s.Keys = []string{"body:stringify"} }),
	}})
	if err == nil || !strings.Contains(err.Error(), "older guard") {
		t.Errorf("an older guard's hash as the key: %v", err)
	}
}

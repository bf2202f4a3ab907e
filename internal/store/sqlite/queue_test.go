package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/wire"
)

func event(id, typ string) hookonce.Event {
	return hookonce.Event{
		Key: hookonce.Key{Source: "orders", ID: id}, Type: typ, Body: []byte("body " + id),
		ReceivedAt: time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC),
	}
}

func claimOf(e hookonce.Event) hookonce.Claim {
	return hookonce.Claim{Event: e, Token: hookonce.NewToken(), TTL: time.Hour, Answer: hookonce.Answer{Status: 200}}
}

// byType sends "both" to two groups, "none" to nobody, the rest to "tickets".
func byType(e hookonce.Event) []string {
	switch e.Type {
	case "both":
		return []string{"tickets", "mails"}
	case "none":
		return nil
	}
	return []string{"tickets"}
}

func openQueue(t *testing.T) *sqlite.Store {
	t.Helper()
	return open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "hookonce.db"), Route: byType})
}

func subscribe(t *testing.T, s *sqlite.Store, group string, prefetch int) queue.Subscription {
	t.Helper()
	sub, err := s.Subscribe(t.Context(), group, prefetch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
	})
	return sub
}

func next(t *testing.T, sub queue.Subscription) queue.Received {
	t.Helper()
	select {
	case r, ok := <-sub.C():
		if !ok {
			t.Fatalf("closed: %v", sub.Err())
		}
		return r
	case <-time.After(10 * time.Second):
		t.Fatal("nothing delivered within 10s")
	}
	return queue.Received{}
}

// nothing makes sure that no event comes for two idle polls.
func nothing(t *testing.T, sub queue.Subscription) {
	t.Helper()
	select {
	case r, ok := <-sub.C():
		if ok {
			t.Fatalf("got %v", r.Key)
		}
		t.Fatalf("closed: %v", sub.Err())
	case <-time.After(450 * time.Millisecond):
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func claim(t *testing.T, s *sqlite.Store, es ...hookonce.Event) {
	t.Helper()
	for _, e := range es {
		got, err := s.ClaimOne(t.Context(), claimOf(e))
		if err != nil || got.Outcome != hookonce.New || got.Entry != (hookonce.EntryID{}) {
			t.Fatalf("claim: %+v, %v", got, err)
		}
	}
}

func waiting(t *testing.T, s *sqlite.Store) int64 {
	t.Helper()
	st, err := s.Stats(t.Context())
	must(t, err)
	if (st.Events == 0) != (st.Bytes == 0) {
		t.Fatalf("stats %+v", st)
	}
	return st.Events
}

func TestClaimReachesEachGroup(t *testing.T) {
	s := openQueue(t)
	tickets, mails, rest := subscribe(t, s, "tickets", 8), subscribe(t, s, "mails", 8), subscribe(t, s, queue.Unrouted, 8)
	parked := event("p", "both")
	parked.Parked = "no key"
	claim(t, s, event("1", "both"), event("2", "none"), event("3", "one"), parked)
	if n := waiting(t, s); n != 5 {
		t.Errorf("%d rows, want 5", n)
	}
	for _, want := range []struct {
		sub queue.Subscription
		ids []string
	}{{tickets, []string{"1", "3"}}, {mails, []string{"1"}}, {rest, []string{"2", "p"}}} {
		for _, id := range want.ids {
			r := next(t, want.sub)
			if r.Key.ID != id || string(r.Body) != "body "+id || r.Invalid != nil || r.Attempt != 0 || r.At.IsZero() {
				t.Errorf("got %+v, want %s", r, id)
			}
			must(t, want.sub.Ack(t.Context(), r))
		}
	}
	if n := waiting(t, s); n != 0 {
		t.Errorf("%d rows left", n)
	}
}

func TestPrefetchBoundsWhatIsUnsettled(t *testing.T) {
	s := openQueue(t)
	for i := range 7 {
		claim(t, s, event(fmt.Sprint(i), "one"))
	}
	sub := subscribe(t, s, "tickets", 3)
	a, b, c := next(t, sub), next(t, sub), next(t, sub)
	nothing(t, sub)
	must(t, sub.Ack(t.Context(), a, b))
	d, e := next(t, sub), next(t, sub)
	nothing(t, sub)
	must(t, sub.Requeue(t.Context(), c))
	again := next(t, sub)
	if d.Key.ID != "3" || e.Key.ID != "4" || again.Key.ID != "2" {
		t.Errorf("got %v, %v, then %v", d.Key, e.Key, again.Key)
	}
	if err := sub.Ack(t.Context(), c); !errors.Is(err, sqlite.ErrNotDelivered) {
		t.Errorf("ack of a settled delivery: %v", err)
	}
}

func TestRetryComesWhenDueWithItsFacts(t *testing.T) {
	s := openQueue(t)
	sub := subscribe(t, s, "tickets", 8)
	claim(t, s, event("1", "one"))
	r := next(t, sub)
	d := r.Delivery
	d.Attempt, d.Generation, d.Run, d.Rerouted = 1, 2, 3, true
	d.Body = bytes.Repeat([]byte("longer"), 100)
	d.Due = time.Now().Add(600 * time.Millisecond)
	must(t, sub.Retry(t.Context(), r, d))
	if n := waiting(t, s); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
	nothing(t, sub)
	claim(t, s, event("2", "one"))
	if got := next(t, sub); got.Key.ID != "2" {
		t.Errorf("got %v before the retry", got.Key)
	}
	got := next(t, sub)
	late := time.Since(d.Due)
	if late < 0 || late > 5*time.Second {
		t.Errorf("delivered %v after it was due", late)
	}
	if !got.Due.Equal(d.Due) {
		t.Errorf("due %v, want %v", got.Due, d.Due)
	}
	got.Due, d.Due = time.Time{}, time.Time{}
	if diff := cmp.Diff(d, got.Delivery); diff != "" {
		t.Error(diff)
	}
	must(t, sub.Bury(t.Context(), got, got.Delivery))
	nothing(t, sub)
	if n := waiting(t, s); n != 1 {
		t.Errorf("%d rows, want the unsettled one", n)
	}
}

func TestSend(t *testing.T) {
	s := openQueue(t)
	tickets, mails := subscribe(t, s, "tickets", 8), subscribe(t, s, "mails", 8)
	must(t, s.Send(t.Context(), "mails", wire.Delivery{Event: event("1", "one"), Generation: 4}))
	if r := next(t, mails); r.Generation != 4 {
		t.Errorf("got %+v", r)
	}
	must(t, s.Send(t.Context(), "", wire.Delivery{Event: event("2", "both"), Rerouted: true}))
	for _, sub := range []queue.Subscription{tickets, mails} {
		if r := next(t, sub); r.Key.ID != "2" || !r.Rerouted {
			t.Errorf("got %+v", r)
		}
	}
	must(t, s.Send(t.Context(), "", wire.Delivery{Event: event("3", "none")}))
	if r := next(t, subscribe(t, s, queue.Unrouted, 1)); r.Key.ID != "3" {
		t.Errorf("got %+v", r)
	}
}

func TestUnsettledComesAgainToOthers(t *testing.T) {
	s := openQueue(t)
	claim(t, s, event("1", "one"), event("2", "one"))
	first := subscribe(t, s, "tickets", 8)
	r1, r2 := next(t, first), next(t, first)
	second := subscribe(t, s, "tickets", 8)
	nothing(t, second)
	first.Stop()
	if _, ok := <-first.C(); ok || first.Err() != nil {
		t.Errorf("after Stop: open %v, err %v", ok, first.Err())
	}
	nothing(t, second)
	must(t, first.Ack(t.Context(), r1)) // what was delivered can still be settled
	must(t, first.Close())
	if got := next(t, second); got.Key != r2.Key {
		t.Errorf("got %v, want %v", got.Key, r2.Key)
	}
	nothing(t, second)
	if err := first.Ack(t.Context(), r2); !errors.Is(err, sqlite.ErrClosed) {
		t.Errorf("ack after Close: %v", err)
	}
}

func TestReopenFreesWhatWasHandedOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	s := open(t, sqlite.Options{Path: path, Route: byType})
	claim(t, s, event("1", "one"), event("2", "one"))
	sub := subscribe(t, s, "tickets", 8)
	must(t, sub.Ack(t.Context(), next(t, sub)))
	next(t, sub)
	must(t, s.Close())
	if _, ok := <-sub.C(); ok || !errors.Is(sub.Err(), sqlite.ErrClosed) {
		t.Errorf("open %v, err %v", ok, sub.Err())
	}
	s = open(t, sqlite.Options{Path: path, Route: byType})
	sub = subscribe(t, s, "tickets", 8)
	if r := next(t, sub); r.Key.ID != "2" {
		t.Errorf("got %v", r.Key)
	}
	nothing(t, sub)
}

// TestNoneIsLostOrTwice runs claims, workers and retries against each other.
func TestNoneIsLostOrTwice(t *testing.T) {
	s := openQueue(t)
	const total = 400
	var mu sync.Mutex
	seen := map[string]int{}
	left := total
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range 3 {
		sub := subscribe(t, s, "tickets", 16)
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case r := <-sub.C():
						if r.Attempt == 0 && r.Key.ID[0]%2 == 0 {
							d := r.Delivery
							d.Attempt, d.Due = 1, time.Now().Add(5*time.Millisecond)
							if err := sub.Retry(ctx, r, d); err != nil {
								t.Error(err)
							}
							continue
						}
						mu.Lock()
						seen[r.Key.ID]++
						mu.Unlock()
						if err := sub.Ack(ctx, r); err != nil {
							t.Error(err)
						}
						mu.Lock()
						if left--; left == 0 {
							cancel()
						}
						mu.Unlock()
					case <-ctx.Done():
						return
					}
				}
			})
		}
	}
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < total; i += 8 {
				if _, err := s.ClaimOne(t.Context(), claimOf(event(fmt.Sprint(i), "one"))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(seen) != total {
		t.Fatalf("%d of %d events done", len(seen), total)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("event %s done %d times", id, n)
		}
	}
	if n := waiting(t, s); n != 0 {
		t.Errorf("%d rows left", n)
	}
}

func TestOutboxOfAnEarlierConfigurationIsQueued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	s := open(t, sqlite.Options{Path: path})
	for i := range 250 {
		if _, err := s.ClaimOne(t.Context(), claimOf(event(fmt.Sprint(i), "both"))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Subscribe(t.Context(), "tickets", 1); err == nil {
		t.Error("a store without Route is no queue, and Subscribe must say so")
	}
	must(t, s.Close())
	s = open(t, sqlite.Options{Path: path, Route: byType})
	if n := waiting(t, s); n != 500 {
		t.Errorf("%d rows, want 500", n)
	}
	must(t, s.Close())
	s = open(t, sqlite.Options{Path: path})
	if w := s.Warnings(t.Context()); len(w) != 1 {
		t.Errorf("warnings %q, want one about the queue", w)
	}
}

// TestIdleQueueIsNudged: a delivery does not wait for the next poll.
func TestIdleQueueIsNudged(t *testing.T) {
	s := openQueue(t)
	sub := subscribe(t, s, "tickets", 1)
	best := time.Hour
	for i := range 20 {
		claim(t, s, event(fmt.Sprint(i), "one"))
		start := time.Now()
		r := next(t, sub)
		best = min(best, time.Since(start))
		must(t, sub.Ack(t.Context(), r))
	}
	if best > 50*time.Millisecond {
		t.Errorf("the fastest of 20 deliveries took %v", best)
	}
}

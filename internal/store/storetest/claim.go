package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
)

func oneOfManyIsNew(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	const callers, rounds = 64, 5
	for round := range rounds {
		var fresh, dup atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range callers {
			wg.Go(func() {
				c := claim(fmt.Sprintf("k%d", round))
				<-start
				got, err := s.ClaimOne(t.Context(), c)
				switch {
				case err != nil:
					t.Errorf("ClaimOne: %v", err)
				case got.Outcome == hookonce.New:
					fresh.Add(1)
				case got.Outcome == hookonce.Duplicate:
					dup.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		if fresh.Load() != 1 || dup.Load() != callers-1 {
			t.Fatalf("round %d: %d new, %d duplicates", round, fresh.Load(), dup.Load())
		}
	}
	if n := waiting(t, s); n != rounds {
		t.Errorf("%d events wait, want %d", n, rounds)
	}
}

func newThenDuplicate(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	first := claim("a")
	before := time.Now().Add(-time.Second)
	got := mustClaim(t, s, first)[0]
	wantOutcome(t, got, hookonce.New)
	if (got.Entry == hookonce.EntryID{}) != h.Queue {
		t.Errorf("Entry = %v", got.Entry)
	}
	second := claim("a")
	second.Answer, second.Fingerprint = hookonce.Answer{Status: 200, Body: "other"}, [16]byte{9}
	dup := mustClaim(t, s, second)[0]
	wantOutcome(t, dup, hookonce.Duplicate)
	if dup.First != first.Answer || dup.Fingerprint != first.Fingerprint || dup.Key != first.Event.Key || dup.Entry != (hookonce.EntryID{}) {
		t.Errorf("duplicate got %+v", dup)
	}
	if !dup.FirstSeen.Equal(got.FirstSeen) || (!h.Clock && dup.FirstSeen.Before(before)) {
		t.Errorf("first seen %v, then %v", got.FirstSeen, dup.FirstSeen)
	}
	other := claim("a")
	other.Event.Key.Source = "payments"
	wantOutcome(t, mustClaim(t, s, other)[0], hookonce.New)
	if n := waiting(t, s); n != 2 {
		t.Errorf("%d events wait, want 2", n)
	}
}

func repeatsInABatch(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	a, b, again, sameToken := claim("a"), claim("b"), claim("a"), claim("b")
	again.Answer.Body = "not the first"
	sameToken.Token = b.Token
	out := mustClaim(t, s, a, b, again, sameToken)
	wantOutcome(t, out[0], hookonce.New)
	wantOutcome(t, out[1], hookonce.New)
	wantOutcome(t, out[2], hookonce.Duplicate)
	wantOutcome(t, out[3], hookonce.Duplicate)
	if out[2].First != a.Answer || out[3].First != b.Answer {
		t.Errorf("repeats were answered %v and %v", out[2].First, out[3].First)
	}
	if n := waiting(t, s); n != 2 {
		t.Errorf("%d events wait, want 2", n)
	}
}

func sameTokenIsNewAgain(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	c := claim("a")
	first := mustClaim(t, s, c)[0]
	again := mustClaim(t, s, c)[0]
	wantOutcome(t, again, hookonce.New)
	if again.Entry != first.Entry {
		t.Errorf("entry %v, then %v", first.Entry, again.Entry)
	}
	if n := waiting(t, s); n != 1 {
		t.Fatalf("%d events wait, want 1", n)
	}
	if h.Queue {
		return
	}
	if err := s.Settle(t.Context(), pending(t, s)); err != nil {
		t.Fatal(err)
	}
	again = mustClaim(t, s, c)[0]
	wantOutcome(t, again, hookonce.New)
	if again.Entry != (hookonce.EntryID{}) || waiting(t, s) != 0 {
		t.Errorf("after Settle: entry %v, %d events wait", again.Entry, waiting(t, s))
	}
}

// lookupKey claims under another key than the event's own.
func lookupKey(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	for _, hash := range []string{"hash", strings.Repeat("h", 600)} {
		lookup := hookonce.Key{Source: "orders", ID: hash}
		c := claim(hash + "~receipt1")
		c.Lookup = &lookup
		wantOutcome(t, mustClaim(t, s, c)[0], hookonce.New)
		second := claim(hash + "~receipt2")
		second.Lookup = &lookup
		dup := mustClaim(t, s, second)[0]
		wantOutcome(t, dup, hookonce.Duplicate)
		if dup.Key != c.Event.Key {
			t.Errorf("the first event's key is %v, want %v", dup.Key, c.Event.Key)
		}
		wantOutcome(t, mustClaim(t, s, claim(hash+"~receipt1"))[0], hookonce.New) // the event's own key is free
	}
}

func strangeKeys(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	long := strings.Repeat("x", 255-len("orders/"))
	ids := []string{
		long, long + "x", long + "y", strings.Repeat("x", 10<<10), strings.Repeat("x", 10<<10) + "y",
		"a\x00b", "a\x00c", "a", "a/b", "a:b", "ação ✓ 🎫", "\xff\xfe", " ", "{tag}", "a\r\nb", "%2F",
		strings.Repeat("k", hookonce.MaxKey),
	}
	var cs []hookonce.Claim
	for _, id := range ids {
		cs = append(cs, claim(id))
	}
	for i, got := range mustClaim(t, s, cs...) {
		if got.Outcome != hookonce.New || got.Key.ID != ids[i] {
			t.Errorf("key %.40q: %v, %v, key %.40q", ids[i], got.Outcome, got.Err, got.Key.ID)
		}
	}
	for i, id := range ids {
		got, err := s.ClaimOne(t.Context(), claim(id))
		if err != nil || got.Outcome != hookonce.Duplicate || got.Key.ID != id || got.First != cs[i].Answer {
			t.Errorf("key %.40q again: %v, %v", id, got.Outcome, err)
		}
	}
	// "a" + "b:c" and "a:b" + "c" run together in a name that joins with ":".
	left, right := claim("b:c"), claim("c")
	left.Event.Key.Source, right.Event.Key.Source = "a", "a:b"
	for _, got := range mustClaim(t, s, left, right) {
		wantOutcome(t, got, hookonce.New)
	}
}

func invalidItem(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	bad := claim("bad")
	bad.Answer.Status = 500
	long := claim(strings.Repeat("k", hookonce.MaxKey+1))
	out := mustClaim(t, s, claim("a"), bad, claim("b"), long)
	wantOutcome(t, out[0], hookonce.New)
	wantOutcome(t, out[2], hookonce.New)
	for _, i := range []int{1, 3} {
		if !errors.Is(out[i].Err, hookonce.ErrInvalid) || out[i].Outcome != 0 {
			t.Errorf("item %d: %v, %v", i, out[i].Outcome, out[i].Err)
		}
	}
	if _, err := s.ClaimOne(t.Context(), bad); !errors.Is(err, hookonce.ErrInvalid) {
		t.Errorf("ClaimOne: %v", err)
	}
	if n := waiting(t, s); n != 2 {
		t.Errorf("%d events wait, want 2", n)
	}
	if out := mustClaim(t, s); len(out) != 0 {
		t.Errorf("an empty batch gave %v", out)
	}
}

func eventSurvives(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	c := claim("a\x00ç")
	c.Event.Header = map[string]string{"X-Two": "2", "X-One": "1, 1"}
	c.Event.Context, c.Event.ContentType = []byte(`{"waba":1}`), "application/json"
	c.Event.Unmatched, c.Event.Parked, c.Event.TraceParent = "drop", "no key", "00-aa-bb-01"
	c.Event.Body = append(bytes.Repeat([]byte("\x00\xff\r\n"), 1<<18), 1) // 1 MiB and a byte
	c.Answer.Body = "OK \x00 ✓"
	wantOutcome(t, mustClaim(t, s, c)[0], hookonce.New)
	if dup := mustClaim(t, s, claim("a\x00ç"))[0]; dup.First != c.Answer {
		t.Errorf("answer %+v", dup.First)
	}
	if h.Queue {
		return
	}
	es := pending(t, s)
	if len(es) != 1 {
		t.Fatalf("%d entries", len(es))
	}
	if !bytes.Equal(es[0].Event.Body, c.Event.Body) {
		t.Error("another body")
	}
	es[0].Event.Body, c.Event.Body = nil, nil
	if d := cmp.Diff(c.Event, es[0].Event); d != "" {
		t.Error(d)
	}
}

func expiryBoundary(t *testing.T, h Harness) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := h.New(t).Open(t, Options{Now: func() time.Time { return now }})
	wantOutcome(t, mustClaim(t, s, claim("a"))[0], hookonce.New)
	now = now.Add(time.Hour - time.Millisecond)
	wantOutcome(t, mustClaim(t, s, claim("a"))[0], hookonce.Duplicate)
	now = now.Add(time.Millisecond)
	got := mustClaim(t, s, claim("a"))[0]
	wantOutcome(t, got, hookonce.New)
	if !got.FirstSeen.Equal(now) {
		t.Errorf("first seen %v, want %v", got.FirstSeen, now)
	}
	wantOutcome(t, mustClaim(t, s, claim("a"))[0], hookonce.Duplicate)
	if n := waiting(t, s); n != 2 {
		t.Errorf("%d events wait, want 2: expiry removes the claim, not the event", n)
	}
}

func expiry(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	c := claim("a")
	c.TTL = 300 * time.Millisecond
	wantOutcome(t, mustClaim(t, s, c, claim("b"))[0], hookonce.New)
	wantOutcome(t, mustClaim(t, s, claim("a"))[0], hookonce.Duplicate)
	eventually(t, "the claim expires", func() bool { return mustClaim(t, s, claim("a"))[0].Outcome == hookonce.New })
	wantOutcome(t, mustClaim(t, s, claim("b"))[0], hookonce.Duplicate)
	if n := waiting(t, s); n != 3 {
		t.Errorf("%d events wait, want 3: expiry removes the claim, not the event", n)
	}
}

func foreignValue(t *testing.T, h Harness) {
	b := h.New(t)
	s := b.Open(t, Options{})
	for _, kind := range []string{"text", "list", "damaged"} {
		c := claim(kind)
		b.Foreign(t, c.Event.Key, kind)
		for range 2 {
			out := mustClaim(t, s, c, claim("beside "+kind))
			if !errors.Is(out[0].Err, hookonce.ErrUnknown) || out[0].Outcome != 0 {
				t.Errorf("%s: %v, %v", kind, out[0].Outcome, out[0].Err)
			}
			if out[1].Err != nil {
				t.Errorf("beside %s: %v", kind, out[1].Err)
			}
		}
	}
	if n := waiting(t, s); n != 3 {
		t.Errorf("%d events wait, want 3", n)
	}
}

func endedContext(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.ClaimOne(ctx, claim("a")); !errors.Is(err, hookonce.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("ClaimOne: %v", err)
	}
	if _, err := s.Claim(ctx, []hookonce.Claim{claim("a")}); !errors.Is(err, hookonce.ErrUnknown) {
		t.Errorf("Claim: %v", err)
	}
	if _, err := s.Pending(ctx, hookonce.EntryID{}, 1); err == nil {
		t.Error("Pending: no error")
	}
}

func closedStore(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	closeStore(t, s)
	if _, err := s.ClaimOne(t.Context(), claim("a")); !errors.Is(err, hookonce.ErrUnknown) {
		t.Errorf("ClaimOne: %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, hookonce.ErrUnknown) {
		t.Errorf("Ping: %v", err)
	}
}

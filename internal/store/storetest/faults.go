package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// lossy opens a store whose answers can be lost, or one whose cannot, with a
// switch that does nothing.
func (h Harness) lossy(t *testing.T) (Store, func(bool)) {
	t.Helper()
	b := h.New(t)
	if h.Lossy {
		return b.Lossy(t, Options{})
	}
	return b.Open(t, Options{}), func(bool) {}
}

// lostAnswers: the claims were made, and nobody was told. The same tokens get
// New, and nothing is there twice.
func lostAnswers(t *testing.T, h Harness) {
	s, lose := h.lossy(t)
	mustClaim(t, s, claim("before"))
	cs := []hookonce.Claim{claim("a"), claim("b"), withPrevious("c", "old c")}
	lose(true)
	if _, err := s.Claim(t.Context(), cs); !errors.Is(err, hookonce.ErrUnknown) {
		t.Fatalf("Claim: %v, want unknown", err)
	}
	if _, err := s.ClaimOne(t.Context(), cs[0]); !errors.Is(err, hookonce.ErrUnknown) {
		t.Errorf("ClaimOne: %v, want unknown", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, hookonce.ErrUnknown) {
		t.Errorf("Ping: %v, want unknown", err)
	}
	lose(false)
	entries := map[hookonce.EntryID]bool{}
	for range 2 {
		for _, got := range mustClaim(t, s, cs...) {
			wantOutcome(t, got, hookonce.New)
			entries[got.Entry] = true
		}
	}
	for _, c := range cs {
		dup := mustClaim(t, s, claim(c.Event.Key.ID))[0]
		wantOutcome(t, dup, hookonce.Duplicate)
		if dup.First != c.Answer {
			t.Errorf("%s was answered %v", c.Event.Key, dup.First)
		}
	}
	if len(entries) != len(cs) || waiting(t, s) != 4 {
		t.Errorf("%d entries for %d claims, %d wait", len(entries), len(cs), waiting(t, s))
	}
	es := pending(t, s)
	lose(true)
	if err := s.Settle(t.Context(), es); err == nil {
		t.Error("Settle: no error")
	}
	lose(false)
	if err := s.Settle(t.Context(), es); err != nil {
		t.Error(err)
	}
	if n := waiting(t, s); n != 0 {
		t.Errorf("%d wait after Settle, want 0", n)
	}
}

// killedMidBatch: the server dies under load and comes back. What was unknown
// is repeated with its token; every key is taken once, and is there.
func killedMidBatch(t *testing.T, h Harness) {
	b := h.New(t)
	s := b.Open(t, Options{Instance: "one"})
	const clients, each = 16, 60
	var done atomic.Int64
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := range each {
				c := claim(fmt.Sprint(client, "-", i))
				for ; ; <-time.After(2 * time.Millisecond) {
					got, err := s.ClaimOne(t.Context(), c)
					if err == nil && got.Outcome != hookonce.New {
						t.Errorf("%s: %v to its own token", c.Event.Key, got.Outcome)
					}
					if err == nil || t.Context().Err() != nil {
						break
					}
					if !errors.Is(err, hookonce.ErrUnknown) {
						t.Errorf("ClaimOne: %v", err)
						break
					}
				}
				done.Add(1)
			}
		})
	}
	eventually(t, "claims are made", func() bool { return done.Load() > clients*each/4 })
	b.Kill(t)
	b.Start(t)
	wg.Wait()
	es, seen := pending(t, s), map[string]int{}
	for _, e := range es {
		seen[e.Event.Key.ID]++
	}
	if len(seen) != clients*each || len(es) != len(seen) || waiting(t, s) != int64(len(es)) {
		t.Errorf("%d entries of %d keys, %d wait; want %d", len(es), len(seen), waiting(t, s), clients*each)
	}
	wantOutcome(t, mustClaim(t, s, claim("0-0"))[0], hookonce.Duplicate)
}

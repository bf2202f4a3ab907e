package storetest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce"
)

// withPrevious is a claim of k whose older recipes gave other keys.
func withPrevious(k string, older ...string) hookonce.Claim {
	c := claim(k)
	for _, id := range older {
		c.Previous = append(c.Previous, hookonce.Key{Source: "orders", ID: id})
	}
	return c
}

// previousKeys: what was taken under an older recipe's key is a duplicate, and
// gets that delivery's answer.
func previousKeys(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	long := strings.Repeat("o", 600)
	for _, id := range []string{"old", long} {
		first := claim(id)
		wantOutcome(t, mustClaim(t, s, first)[0], hookonce.New)
		second := withPrevious("new of "+id, "older", id)
		second.Answer.Body = "not this"
		dup := mustClaim(t, s, second)[0]
		wantOutcome(t, dup, hookonce.Duplicate)
		if dup.First != first.Answer || dup.Key != first.Event.Key || dup.Entry != (hookonce.EntryID{}) {
			t.Errorf("the duplicate through %.20s got %+v", id, dup)
		}
		wantOutcome(t, mustClaim(t, s, claim("new of "+id))[0], hookonce.New) // a duplicate claims nothing
	}
	// The key itself decides before its previous ones, unless those are looked up first.
	out := mustClaim(t, s, withPrevious("new of old", "old"))[0]
	wantOutcome(t, out, hookonce.Duplicate)
	if out.Key.ID != "new of old" && !h.Sharded {
		t.Errorf("decided by %s", out.Key)
	}
	fresh := withPrevious("fresh", "nothing", "fresh", "nothing")
	got := mustClaim(t, s, fresh)[0]
	wantOutcome(t, got, hookonce.New)
	again := mustClaim(t, s, fresh)[0]
	wantOutcome(t, again, hookonce.New) // the same token
	if again.Entry != got.Entry {
		t.Errorf("entry %v, then %v", got.Entry, again.Entry)
	}
	wantOutcome(t, mustClaim(t, s, withPrevious("fresh", "nothing"))[0], hookonce.Duplicate)
	if n := waiting(t, s); n != 5 {
		t.Errorf("%d events wait, want 5", n)
	}
}

// previousLookup: an older recipe may have claimed the hash of the body, and the
// event's key differs from what is looked up.
func previousLookup(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	hash := hookonce.Key{Source: "orders", ID: "hash"}
	first := claim("hash~receipt")
	first.Lookup = &hash
	wantOutcome(t, mustClaim(t, s, first)[0], hookonce.New)
	dup := mustClaim(t, s, withPrevious("id", "hash"))[0]
	wantOutcome(t, dup, hookonce.Duplicate)
	if dup.Key != first.Event.Key {
		t.Errorf("the first event's key is %v, want %v", dup.Key, first.Event.Key)
	}
}

// previousAreClaimed: receivers with the old and the new recipe run together,
// and each event is taken once, whichever meets it first.
func previousAreClaimed(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	first := withPrevious("new", "old", "older")
	wantOutcome(t, mustClaim(t, s, first)[0], hookonce.New)
	for _, id := range []string{"old", "older"} {
		dup := mustClaim(t, s, claim(id))[0]
		wantOutcome(t, dup, hookonce.Duplicate)
		if dup.Key != first.Event.Key || dup.First != first.Answer || dup.Fingerprint != first.Fingerprint {
			t.Errorf("%s: %+v", id, dup)
		}
	}
	const rounds, callers = 10, 16
	for round := range rounds {
		var fresh atomic.Int64
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				c := claim(fmt.Sprint("old", round))
				if i%2 == 0 {
					c = withPrevious(fmt.Sprint("new", round), fmt.Sprint("old", round))
				}
				got, err := s.ClaimOne(t.Context(), c)
				if err != nil {
					t.Error(err)
				} else if got.Outcome == hookonce.New {
					fresh.Add(1)
				}
			})
		}
		wg.Wait()
		if fresh.Load() != 1 {
			t.Fatalf("round %d: %d new", round, fresh.Load())
		}
	}
	if n := waiting(t, s); n != rounds+1 {
		t.Errorf("%d events wait, want %d", n, rounds+1)
	}
}

// previousInABatch: items of one batch meet through their previous keys too: one
// of them is New, whichever the store takes first.
func previousInABatch(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	cs := []hookonce.Claim{withPrevious("a", "old"), withPrevious("b", "old"), claim("old")}
	first := -1
	out := mustClaim(t, s, cs...)
	for i, got := range out {
		if got.Outcome == hookonce.New && got.Err == nil && first < 0 {
			first = i
			continue
		}
		wantOutcome(t, got, hookonce.Duplicate)
	}
	if first < 0 {
		t.Fatal("none is new")
	}
	for i, got := range out {
		if got.Key != cs[first].Event.Key || got.First != cs[first].Answer {
			t.Errorf("item %d is a duplicate of %v, not of %v", i, got.Key, cs[first].Event.Key)
		}
	}
	if n := waiting(t, s); n != 1 {
		t.Errorf("%d events wait, want 1", n)
	}
}

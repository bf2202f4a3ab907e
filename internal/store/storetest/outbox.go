package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/publisher"
)

// pendingBoundedInBytes: pages of large events are short, and all of them
// together are the outbox.
func pendingBoundedInBytes(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	const events, size = 24, 1 << 20
	for i := range events {
		c := claim(fmt.Sprint(i))
		c.Event.Body = bytes.Repeat([]byte{byte(i)}, size)
		mustClaim(t, s, c)
	}
	var cursor hookonce.EntryID
	seen, slow := 0, 0
	for {
		page, err := s.Pending(t.Context(), cursor, 500)
		if errors.Is(err, hookonce.ErrUnknown) && slow < 10 {
			slow++ // a busy machine; the relay would ask again too
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		if len(page) > publisher.PageBytes/size+1 {
			t.Errorf("a page of %d events of %d bytes", len(page), size)
		}
		seen, cursor = seen+len(page), page[len(page)-1].ID
	}
	if seen != events {
		t.Errorf("%d of %d events in all pages", seen, events)
	}
}

func pendingInOrder(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	var cs []hookonce.Claim
	for i := range 10 {
		cs = append(cs, claim(fmt.Sprint(i)))
	}
	out := mustClaim(t, s, cs[:6]...)
	out = append(out, mustClaim(t, s, cs[6:]...)...)
	es := pending(t, s)
	if h.keys(es) != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Fatalf("pending: %v", keys(es))
	}
	entry := map[hookonce.Key]hookonce.EntryID{}
	for _, c := range out {
		entry[c.Key] = c.Entry
	}
	for i, e := range es {
		if e.ID != entry[e.Event.Key] {
			t.Errorf("entry %d has id %v, the claim said %v", i, e.ID, entry[e.Event.Key])
		}
		if i > 0 && !less(es[i-1].ID, e.ID) {
			t.Errorf("entry %d has id %v, after %v", i, e.ID, es[i-1].ID)
		}
	}
	var after hookonce.EntryID
	var got []hookonce.Entry
	for {
		page, err := s.Pending(t.Context(), after, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		after = page[len(page)-1].ID
	}
	if keys(got) != keys(es) {
		t.Errorf("by pages of 3: %v", keys(got))
	}
}

func settle(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{})
	mustClaim(t, s, claim("a"), claim("b"), claim("c"))
	es := pending(t, s)
	before, err := s.Stats(t.Context())
	if err != nil || before.Events != 3 {
		t.Fatalf("stats %+v, %v", before, err)
	}
	slices.SortFunc(es, func(a, b hookonce.Entry) int { return strings.Compare(a.Event.Key.ID, b.Event.Key.ID) })
	if err := s.Settle(t.Context(), []hookonce.Entry{es[1], es[1]}); err != nil {
		t.Fatal(err)
	}
	if h.keys(pending(t, s)) != "[a c]" || waiting(t, s) != 2 {
		t.Errorf("left: %v, %d wait", keys(pending(t, s)), waiting(t, s))
	}
	unknown := hookonce.Entry{ID: hookonce.EntryID{Hi: 0, Lo: 999_999}, Event: es[0].Event}
	for range 2 { // the second time nothing is there to remove
		if err := s.Settle(t.Context(), append(es[:3:3], unknown)); err != nil {
			t.Fatal(err)
		}
		if n := waiting(t, s); n != 0 {
			t.Errorf("%d wait, want 0", n)
		}
	}
	if err := s.Settle(t.Context(), nil); err != nil {
		t.Error(err)
	}
	wantOutcome(t, mustClaim(t, s, claim("a"))[0], hookonce.Duplicate)
}

func restart(t *testing.T, h Harness) {
	b := h.New(t)
	s := b.Open(t, Options{Instance: "one"})
	c := claim("a")
	mustClaim(t, s, c, claim("b"))
	if !h.Queue {
		for _, e := range pending(t, s) {
			if e.Event.Key.ID == "b" {
				if err := s.Settle(t.Context(), []hookonce.Entry{e}); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	n := waiting(t, s)
	closeStore(t, s)
	s = b.Open(t, Options{Instance: "one"})
	dup := mustClaim(t, s, claim("a"))[0]
	wantOutcome(t, dup, hookonce.Duplicate)
	if dup.First != c.Answer {
		t.Errorf("answer %v after the restart", dup.First)
	}
	if got := waiting(t, s); got != n {
		t.Errorf("%d wait after the restart, %d before", got, n)
	}
	if !h.Queue && keys(pending(t, s)) != "[a]" {
		t.Errorf("pending after the restart: %v", keys(pending(t, s)))
	}
	wantOutcome(t, mustClaim(t, s, claim("c"))[0], hookonce.New)
}

func wantFull(t *testing.T, got hookonce.Claimed) {
	t.Helper()
	if !errors.Is(got.Err, hookonce.ErrOutboxFull) || got.Outcome != 0 {
		t.Fatalf("outcome %v, err %v; want ErrOutboxFull", got.Outcome, got.Err)
	}
}

func fullByCount(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{MaxEvents: 2})
	out := mustClaim(t, s, claim("a"), claim("b"), claim("c"), claim("a"))
	wantOutcome(t, out[0], hookonce.New)
	wantOutcome(t, out[1], hookonce.New)
	wantFull(t, out[2])
	wantOutcome(t, out[3], hookonce.Duplicate)
	if _, err := s.ClaimOne(t.Context(), claim("c")); !errors.Is(err, hookonce.ErrOutboxFull) {
		t.Errorf("ClaimOne: %v", err)
	}
	if h.Queue {
		return
	}
	if err := s.Settle(t.Context(), pending(t, s)[:1]); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, mustClaim(t, s, claim("c"))[0], hookonce.New) // refused before: not claimed
	wantFull(t, mustClaim(t, s, claim("d"))[0])
}

// fullByShare: each shard has its part of the bounds, and its own answers.
func fullByShare(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{MaxEvents: 128, MaxBytes: 1 << 20})
	var cs []hookonce.Claim
	for i := range 400 {
		cs = append(cs, claim(fmt.Sprint(i)))
	}
	taken := 0
	for i, got := range mustClaim(t, s, cs...) {
		if got.Err == nil {
			taken++
			cs[taken-1] = cs[i]
			continue
		}
		wantFull(t, got)
	}
	if taken < 64 || taken > 128 || waiting(t, s) != int64(taken) {
		t.Errorf("%d taken, %d wait", taken, waiting(t, s))
	}
	wantOutcome(t, mustClaim(t, s, claim(cs[0].Event.Key.ID))[0], hookonce.Duplicate)
	if err := s.Settle(t.Context(), pending(t, s)); err != nil {
		t.Fatal(err)
	}
	large, tooLarge := claim("large"), claim("too large")
	large.Event.Body, tooLarge.Event.Body = make([]byte, 900<<10), make([]byte, 1<<20)
	out := mustClaim(t, s, large, tooLarge)
	wantOutcome(t, out[0], hookonce.New) // above its share, and alone
	wantFull(t, out[1])
}

func fullByBytes(t *testing.T, h Harness) {
	s := h.New(t).Open(t, Options{MaxBytes: 10 << 10})
	large := func(k string) hookonce.Claim {
		c := claim(k)
		c.Event.Body = bytes.Repeat([]byte("x"), 6<<10)
		return c
	}
	out := mustClaim(t, s, large("a"), large("b"), claim("small"))
	wantOutcome(t, out[0], hookonce.New)
	wantFull(t, out[1])
	wantOutcome(t, out[2], hookonce.New) // what still fits is taken
	if h.Queue {
		return
	}
	if err := s.Settle(t.Context(), pending(t, s)); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, mustClaim(t, s, large("b"))[0], hookonce.New)
}

// lease is short enough to wait for, and long enough for a busy machine.
const lease = 1500 * time.Millisecond

func adoptAfterTheLease(t *testing.T, h Harness) {
	b := h.New(t)
	died, other := b.Open(t, Options{Lease: lease}), b.Open(t, Options{Lease: lease})
	start := time.Now()
	mustClaim(t, died, claim("a"), claim("b")) // and its process dies here
	closeStore(t, died)
	before := time.Now()
	if len(pending(t, other)) != 0 {
		t.Fatal("entries of another instance are pending here")
	}
	total := 0
	eventually(t, "adoption", func() bool {
		n, err := other.Adopt(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if n != 0 && time.Since(start) < lease {
			t.Fatalf("adopted %d within the lease", n)
		}
		total += n
		return total == 2
	})
	if h.keys(pending(t, other)) != "[a b]" || waiting(t, other) != 2 {
		t.Errorf("pending %v, %d wait", keys(pending(t, other)), waiting(t, other))
	}
	st, err := other.Stats(t.Context())
	if err != nil || st.Oldest.After(before) {
		t.Errorf("oldest %v, %v: adoption must not make events younger than %v", st.Oldest, err, before)
	}
	if err := other.Settle(t.Context(), pending(t, other)); err != nil {
		t.Fatal(err)
	}
	if n := waiting(t, other); n != 0 {
		t.Errorf("%d wait after Settle", n)
	}
	wantOutcome(t, mustClaim(t, other, claim("a"))[0], hookonce.Duplicate)
	if n, err := other.Adopt(t.Context(), 100); n != 0 || err != nil {
		t.Errorf("adopted %d more, %v", n, err)
	}
}

func adoptInParts(t *testing.T, h Harness) {
	b := h.New(t)
	died, other := b.Open(t, Options{Lease: lease}), b.Open(t, Options{Lease: lease})
	for i := range 7 {
		mustClaim(t, died, claim(fmt.Sprint(i)))
	}
	closeStore(t, died)
	total := 0
	eventually(t, "adoption of all 7 in parts", func() bool {
		n, err := other.Adopt(t.Context(), 3)
		if err != nil || n > 3 {
			t.Fatalf("adopted %d, %v", n, err)
		}
		total += n
		return total == 7
	})
	if h.keys(pending(t, other)) != "[0 1 2 3 4 5 6]" || waiting(t, other) != 7 {
		t.Errorf("pending %v, %d wait", keys(pending(t, other)), waiting(t, other))
	}
}

// adoptedByOne: of several instances that adopt at once, each entry goes to one.
func adoptedByOne(t *testing.T, h Harness) {
	b := h.New(t)
	const total = 60
	for i := range 3 {
		died := b.Open(t, Options{Lease: lease})
		for j := range total / 3 {
			mustClaim(t, died, claim(fmt.Sprint(i, "-", j)))
		}
		closeStore(t, died)
	}
	heirs := make([]Store, 4)
	for i := range heirs {
		heirs[i] = b.Open(t, Options{})
	}
	var adopted atomic.Int64
	eventually(t, "adoption of all", func() bool {
		var wg sync.WaitGroup
		for _, s := range heirs {
			wg.Go(func() {
				n, err := s.Adopt(t.Context(), 7)
				if err != nil {
					t.Error(err)
				}
				adopted.Add(int64(n))
			})
		}
		wg.Wait()
		return adopted.Load() >= total
	})
	seen := map[string]int{}
	for _, s := range heirs {
		for _, e := range pending(t, s) {
			seen[e.Event.Key.ID]++
		}
	}
	if adopted.Load() != total || len(seen) != total || waiting(t, heirs[0]) != total {
		t.Errorf("adopted %d, %d different keys, %d wait; want %d", adopted.Load(), len(seen), waiting(t, heirs[0]), total)
	}
	for _, s := range heirs {
		if err := s.Settle(t.Context(), pending(t, s)); err != nil {
			t.Fatal(err)
		}
	}
	if n := waiting(t, heirs[0]); n != 0 {
		t.Errorf("%d wait after Settle", n)
	}
}

// adoptKeepsTheLease: an instance that only adopts keeps what is its own.
func adoptKeepsTheLease(t *testing.T, h Harness) {
	b := h.New(t)
	quiet, other := b.Open(t, Options{Lease: lease}), b.Open(t, Options{Lease: lease})
	mustClaim(t, quiet, claim("a"))
	end := time.Now().Add(2 * lease)
	eventually(t, "two leases pass", func() bool {
		for _, s := range []Store{quiet, other} {
			if n, err := s.Adopt(t.Context(), 100); n != 0 || err != nil {
				t.Fatalf("adopted %d, %v of a living instance", n, err)
			}
		}
		return time.Now().After(end)
	})
	if keys(pending(t, quiet)) != "[a]" {
		t.Errorf("pending: %v", keys(pending(t, quiet)))
	}
}

// settledElsewhere: an instance that was only slow settles what another one
// has adopted; and it claims again, which brings its lease back.
func settledElsewhere(t *testing.T, h Harness) {
	b := h.New(t)
	slow, other := b.Open(t, Options{Lease: lease}), b.Open(t, Options{Lease: lease})
	mustClaim(t, slow, claim("a"))
	es := pending(t, slow)
	eventually(t, "adoption", func() bool {
		n, err := other.Adopt(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	if err := slow.Settle(t.Context(), es); err != nil {
		t.Fatal(err)
	}
	if keys(pending(t, other)) != "[a]" || waiting(t, other) != 1 {
		t.Errorf("pending %v, %d wait", keys(pending(t, other)), waiting(t, other))
	}
	start := time.Now()
	mustClaim(t, slow, claim("b"))
	n, err := other.Adopt(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	if n != 0 && time.Since(start) < lease {
		t.Errorf("adopted %d of an instance that has just claimed", n)
	}
	if n == 0 && keys(pending(t, slow)) != "[b]" || waiting(t, slow) != 2 {
		t.Errorf("pending %v, %d wait", keys(pending(t, slow)), waiting(t, slow))
	}
}

func boundsAreShared(t *testing.T, h Harness) {
	b := h.New(t)
	one, two := b.Open(t, Options{MaxEvents: 3}), b.Open(t, Options{MaxEvents: 3})
	mustClaim(t, one, claim("a"), claim("b"))
	out := mustClaim(t, two, claim("c"), claim("d"))
	wantOutcome(t, out[0], hookonce.New)
	wantFull(t, out[1])
	if waiting(t, one) != 3 || waiting(t, two) != 3 {
		t.Errorf("%d and %d wait, want 3", waiting(t, one), waiting(t, two))
	}
}

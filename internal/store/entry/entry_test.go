package entry_test

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
	"github.com/hookonce/hookonce/internal/wire"
)

var full = hookonce.Event{
	Key: hookonce.Key{Source: "orders", ID: "a\x00b/ç✓"}, Type: "order.paid", ContentType: "application/json",
	Body: []byte("{\"n\": 1}\x00\xff"), Header: map[string]string{"X-B": "2", "X-A": "1, 2", "": ""},
	Context: []byte(`{"waba":"1"}`), ReceivedAt: time.Date(2026, 11, 30, 1, 2, 3, 456789012, time.UTC),
	Unmatched: "drop", Parked: "no key", TraceParent: "00-1-2-01",
}

func TestEventRoundTrip(t *testing.T) {
	for name, e := range map[string]hookonce.Event{
		"zero": {}, "full": full,
		"large": {Key: hookonce.Key{Source: "s", ID: strings.Repeat("k", 16<<10)}, Body: bytes.Repeat([]byte{7}, 40<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			data := entry.Marshal(e)
			if len(data) != entry.Size(e) {
				t.Errorf("Size = %d, encoded %d", entry.Size(e), len(data))
			}
			got, err := entry.Unmarshal(data)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(e, got); d != "" {
				t.Error(d)
			}
			for range 20 {
				if !bytes.Equal(data, entry.Marshal(e)) {
					t.Fatal("the same event gave other bytes")
				}
			}
		})
	}
}

func TestDeliveryRoundTrip(t *testing.T) {
	for _, d := range []wire.Delivery{
		{Event: full},
		{Event: full, UnmatchedSince: full.ReceivedAt},
		{Event: full, Attempt: 3, Generation: 2, Run: 1, Rerouted: true, DeadCopy: true, Reason: "failed", Due: full.ReceivedAt.Add(time.Hour), UnmatchedSince: full.ReceivedAt},
	} {
		got, err := entry.UnmarshalDelivery(entry.MarshalDelivery(d))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestDamagedBytesAreRefused(t *testing.T) {
	data := entry.Marshal(full)
	for n := range data {
		if _, err := entry.Unmarshal(data[:n]); !errors.Is(err, entry.ErrCorrupt) {
			t.Fatalf("%d of %d bytes: err = %v", n, len(data), err)
		}
	}
	if _, err := entry.Unmarshal(append(data, 0)); !errors.Is(err, entry.ErrCorrupt) {
		t.Errorf("a byte too many: err = %v", err)
	}
	data[0] = 200
	if _, err := entry.Unmarshal(data); !errors.Is(err, entry.ErrCorrupt) || !strings.Contains(err.Error(), "version 200") {
		t.Errorf("unknown version: err = %v", err)
	}
}

func TestCheck(t *testing.T) {
	ok := hookonce.Claim{Event: full, Answer: hookonce.Answer{Status: 200}, TTL: time.Hour}
	if err := entry.Check(ok); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*hookonce.Claim){
		"no source":    func(c *hookonce.Claim) { c.Event.Key.Source = "" },
		"slash":        func(c *hookonce.Claim) { c.Event.Key.Source = "a/b" },
		"no key":       func(c *hookonce.Claim) { c.Event.Key.ID = "" },
		"long key":     func(c *hookonce.Claim) { c.Event.Key.ID = strings.Repeat("k", hookonce.MaxKey+1) },
		"empty lookup": func(c *hookonce.Claim) { c.Lookup = &hookonce.Key{Source: "s"} },
		"bad previous": func(c *hookonce.Claim) { c.Previous = []hookonce.Key{{Source: "s"}} },
		"no ttl":       func(c *hookonce.Claim) { c.TTL = 0 },
		"status":       func(c *hookonce.Claim) { c.Answer.Status = 301 },
		"answer":       func(c *hookonce.Claim) { c.Answer.Body = strings.Repeat("x", entry.MaxAnswer+1) },
	} {
		c := ok
		spoil(&c)
		if err := entry.Check(c); !errors.Is(err, hookonce.ErrInvalid) {
			t.Errorf("%s: err = %v", name, err)
		}
	}
}

// TestMarkRepeats: within a batch a key is New once, through whichever of its
// keys it is met; what only repeats takes no key.
func TestMarkRepeats(t *testing.T) {
	c := func(id string, previous ...string) hookonce.Claim {
		c := hookonce.Claim{Event: hookonce.Event{Key: hookonce.Key{Source: "s", ID: id}}}
		for _, p := range previous {
			c.Previous = append(c.Previous, hookonce.Key{Source: "s", ID: p})
		}
		return c
	}
	claims := []hookonce.Claim{c("a", "old"), c("b", "old"), c("b"), c("old"), c("a"), c("c")}
	out := make([]hookonce.Claimed, len(claims))
	for i := range out {
		out[i] = hookonce.Claimed{Outcome: hookonce.New, Entry: hookonce.EntryID{Lo: 1}}
	}
	out[5] = hookonce.Claimed{Err: hookonce.ErrUnknown}
	entry.MarkRepeats(claims, out)
	want := []hookonce.Outcome{hookonce.New, hookonce.Duplicate, hookonce.New, hookonce.Duplicate, hookonce.Duplicate, 0}
	for i, got := range out {
		if got.Outcome != want[i] || (got.Entry != hookonce.EntryID{}) != (want[i] == hookonce.New) {
			t.Errorf("item %d: %v with entry %v, want %v", i, got.Outcome, got.Entry, want[i])
		}
	}
}

func FuzzUnmarshal(f *testing.F) {
	f.Add(entry.Marshal(full))
	f.Add(entry.Marshal(hookonce.Event{}))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := entry.Unmarshal(data)
		if err != nil {
			if !errors.Is(err, entry.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again, err := entry.Unmarshal(entry.Marshal(e))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(e, again) {
			t.Errorf("%+v became %+v", e, again)
		}
	})
}

func FuzzDelivery(f *testing.F) {
	f.Add(int64(math.MaxInt64), "k", []byte("b"), true)
	f.Fuzz(func(t *testing.T, n int64, s string, body []byte, flag bool) {
		d := wire.Delivery{Attempt: int(n), Rerouted: flag, Reason: s}
		d.Key.ID, d.Body = s, body
		got, err := entry.UnmarshalDelivery(entry.MarshalDelivery(d))
		if err != nil {
			t.Fatal(err)
		}
		if got.Attempt != d.Attempt || got.Rerouted != flag || got.Reason != s || got.Key.ID != s || !bytes.Equal(got.Body, body) {
			t.Errorf("%+v became %+v", d, got)
		}
	})
}

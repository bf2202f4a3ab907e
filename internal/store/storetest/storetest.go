// Package storetest is the conformance suite of the claim stores. A store is
// correct when it passes it on a real server:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{
//			New: func(t *testing.T) storetest.Backend { ... },
//		})
//	}
//
// What a store does differently is said by the flags of [Harness]; a test that
// does not apply is not run at all, rather than skipped.
package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/publisher"
)

// Store is the port of a claim store: what the receiver and the relay call.
type Store interface {
	// Claim claims keys, atomically each; see the stores.
	Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error)
	// ClaimOne claims one key together with other callers' keys.
	ClaimOne(ctx context.Context, c hookonce.Claim) (hookonce.Claimed, error)
	publisher.Outbox
	publisher.Measurer
	Ping(ctx context.Context) error
	Close() error
}

// Options are what the suite varies; the zero value means the store's defaults.
type Options struct {
	// Instance names the instance, where a store has several.
	Instance string
	// Lease is for stores with [Harness.Instances].
	Lease               time.Duration
	MaxEvents, MaxBytes int64
	// Now is for stores with [Harness.Clock].
	Now func() time.Time
}

// Backend is one empty set of data.
type Backend struct {
	// Open opens a store on the data. Without [Harness.Instances] the suite
	// closes it before it opens the next one.
	Open func(t *testing.T, o Options) Store
	// Foreign writes a value that Hookonce did not write under a key's name;
	// kind is "text", "list" or "damaged". For [Harness.Foreign].
	Foreign func(t *testing.T, key hookonce.Key, kind string)
	// Lossy opens a store through a [Proxy] or the like: while lose is on,
	// requests are carried out and answers do not come back. For [Harness.Lossy].
	Lossy func(t *testing.T, o Options) (s Store, lose func(on bool))
	// Kill ends the server as kill -9 does, Start starts it again. For
	// [Harness.Kill].
	Kill, Start func(t *testing.T)
}

// Harness makes a store for the suite.
type Harness struct {
	// New makes a backend for one test; it cleans up through t.Cleanup.
	New func(t *testing.T) Backend
	// Instances: several stores work on the same data at the same time, each
	// with an outbox of its own and a lease.
	Instances bool
	// Clock: expiry follows Options.Now. Otherwise it follows the server's
	// clock, and the suite uses short times.
	Clock bool
	// Foreign: others may write under our names, see [Backend].Foreign.
	Foreign bool
	// Lossy and Kill: the backend can lose answers, and its server be killed.
	Lossy, Kill bool
	// Sharded: the data lie in parts: the outbox has an order within each of them
	// only, each has its share of the bounds, and previous keys are looked up, not
	// claimed.
	Sharded bool
	// Parallel lets the tests run beside each other: each has a backend of its own.
	Parallel bool
	// Queue: the store delivers by itself: Entry is always zero, nothing is
	// ever Pending.
	Queue bool
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	tests := map[string]func(*testing.T, Harness){
		"OneOfManyIsNew":      oneOfManyIsNew,
		"NewThenDuplicate":    newThenDuplicate,
		"RepeatsInABatch":     repeatsInABatch,
		"SameTokenIsNewAgain": sameTokenIsNewAgain,
		"LookupKey":           lookupKey,
		"StrangeKeys":         strangeKeys,
		"InvalidItem":         invalidItem,
		"EventSurvives":       eventSurvives,
		"Restart":             restart,
		"PreviousKeys":        previousKeys,
		"PreviousLookup":      previousLookup,
		"EndedContext":        endedContext,
		"Closed":              closedStore,
		"Linearizable":        linearizable,
		"LinearizableExpiry":  linearizableWithExpiry,
	}
	if h.Sharded {
		tests["FullByShare"] = fullByShare
	} else {
		tests["FullByCount"] = fullByCount
		tests["FullByBytes"] = fullByBytes
		tests["PreviousAreClaimed"] = previousAreClaimed
		tests["PreviousInABatch"] = previousInABatch
	}
	if !h.Queue {
		tests["PendingInOrder"] = pendingInOrder
		tests["PendingBoundedInBytes"] = pendingBoundedInBytes
		tests["Settle"] = settle
	}
	if h.Clock {
		tests["ExpiryBoundary"] = expiryBoundary
	} else {
		tests["Expiry"] = expiry
	}
	if h.Instances {
		tests["AdoptAfterTheLease"] = adoptAfterTheLease
		tests["AdoptInParts"] = adoptInParts
		tests["SettledElsewhere"] = settledElsewhere
		tests["AdoptedByOne"] = adoptedByOne
		tests["AdoptKeepsTheLease"] = adoptKeepsTheLease
	}
	if h.Instances && !h.Sharded {
		tests["BoundsAreShared"] = boundsAreShared
	}
	if h.Lossy {
		tests["LostAnswers"] = lostAnswers
	}
	if h.Kill {
		tests["KilledMidBatch"] = killedMidBatch
	}
	if h.Foreign {
		tests["ForeignValueIsUnknown"] = foreignValue
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if h.Parallel {
				t.Parallel()
			}
			test(t, h)
		})
	}
}

// claim is a claim of key k of source "orders" for an hour, with a new token.
func claim(k string) hookonce.Claim {
	return hookonce.Claim{
		Event: hookonce.Event{
			Key: hookonce.Key{Source: "orders", ID: k}, Type: "order.paid", Body: []byte("body of " + k),
			ReceivedAt: time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC),
		},
		Token: hookonce.NewToken(), Fingerprint: [16]byte{1, 2, 3}, TTL: time.Hour,
		Answer: hookonce.Answer{Status: 202, Body: "ok " + k + " 12-3"},
	}
}

func mustClaim(t *testing.T, s Store, cs ...hookonce.Claim) []hookonce.Claimed {
	t.Helper()
	out, err := s.Claim(t.Context(), cs)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	if len(out) != len(cs) {
		t.Fatalf("Claim: %d answers to %d claims", len(out), len(cs))
	}
	return out
}

func wantOutcome(t *testing.T, got hookonce.Claimed, want hookonce.Outcome) {
	t.Helper()
	if got.Err != nil || got.Outcome != want {
		t.Fatalf("outcome %v, err %v; want %v", got.Outcome, got.Err, want)
	}
}

func pending(t *testing.T, s Store) []hookonce.Entry {
	t.Helper()
	es, err := s.Pending(t.Context(), hookonce.EntryID{}, 1000)
	if err != nil {
		t.Fatalf("Pending: %v", err)
	}
	return es
}

// waiting is the number of events in the outbox or queue.
func waiting(t *testing.T, s Store) int64 {
	t.Helper()
	st, err := s.Stats(t.Context())
	if err != nil {
		t.Fatalf("Stats: %v", err)
	}
	if (st.Events == 0) != (st.Bytes == 0) || (st.Events == 0) != st.Oldest.IsZero() {
		t.Fatalf("Stats: %+v", st)
	}
	return st.Events
}

func closeStore(t *testing.T, s Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

// eventually polls until ok, for at most 20 seconds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within 20s: %s", what)
		}
	}
}

func keys(es []hookonce.Entry) string {
	out := make([]string, len(es))
	for i, e := range es {
		out[i] = e.Event.Key.ID
	}
	return fmt.Sprint(out)
}

// keys are those of the entries, sorted where the outbox keeps no order.
func (h Harness) keys(es []hookonce.Entry) string {
	if h.Sharded {
		es = slices.Clone(es)
		slices.SortFunc(es, func(a, b hookonce.Entry) int { return strings.Compare(a.Event.Key.ID, b.Event.Key.ID) })
	}
	return keys(es)
}

func less(a, b hookonce.EntryID) bool { return a.Hi < b.Hi || a.Hi == b.Hi && a.Lo < b.Lo }

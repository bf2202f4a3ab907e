package admin_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/admin"
	"github.com/hookonce/hookonce/internal/inbox"
)

// manyEvents is how many dead letters a change meets here; the soak sets
// HOOKONCE_TEST_DEAD=250000.
func manyEvents(t *testing.T) int {
	t.Helper()
	text, ok := os.LookupEnv("HOOKONCE_TEST_DEAD")
	if !ok {
		return 1000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A change applies to everything that is selected, however much it is, in
// batches: the memory it takes is that of a batch.
func TestAChangeOfVeryManyLettersIsWhole(t *testing.T) {
	e := newEnv(t)
	n := manyEvents(t)
	for i := range n {
		ev := event(fmt.Sprintf("k%07d", i))
		if _, err := e.inbox.Park(t.Context(), inbox.Letter{Event: ev, Group: "g", Reason: inbox.Expired, Error: "too old"}); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	half := n / 2
	totals, err := e.client.Discard(t.Context(), admin.Change{All: true, Limit: half, Comment: "x"}, nil)
	e.must(err)
	if totals.Discarded != half || totals.Total != half {
		t.Errorf("discarded: %+v", totals)
	}
	lines := 0
	totals, err = e.client.Replay(t.Context(), admin.Change{All: true}, func(admin.Line) { lines++ })
	e.must(err)
	if totals.Replayed != n-half || lines != n-half || len(e.queue.sent) != n-half {
		t.Errorf("replayed: %+v, %d lines, %d sent", totals, lines, len(e.queue.sent))
	}
	t.Logf("%d letters in %v", n, time.Since(began))
	left, err := e.inbox.CountDead(t.Context())
	if err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

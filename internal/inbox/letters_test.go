package inbox_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

func TestALetterComesBackAsItWent(t *testing.T) {
	each(t, func(e *env) {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		d := wire.Delivery{Event: hookonce.Event{
			Key: hookonce.Key{Source: "shop", ID: "a/b\x00\xff"}, Type: "order paid \x00\xff", ContentType: "text/\xff", Body: all,
			Header: map[string]string{"X-One": "1"}, Context: []byte(`{"entry":"7"}`), ReceivedAt: e.clock.Now().Truncate(time.Microsecond),
			Unmatched: "drop", TraceParent: "00-1-2-01",
		}}
		l := e.run(d)
		e.must(e.Bury(e.Context(), l, inbox.Letter{Event: d.Event, Reason: inbox.Permanent, Step: "mail", Error: "no such user 42"}))
		got, err := e.Letter(e.Context(), "g", d.Key)
		e.must(err)
		want := inbox.Letter{
			Event: d.Event, Group: "g", Reason: inbox.Permanent, Step: "mail", Error: "no such user 42", Attempts: 1,
			DeadAt: e.clock.Now().Truncate(time.Microsecond),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			e.Error(diff)
		}
		if r := e.record(d); r.State != inbox.Dead || r.Type != d.Type || r.LastError != want.Error || r.Steps[0].State != inbox.StepFailed {
			e.Errorf("record %+v", r)
		}
		_, err = e.Letter(e.Context(), "g", hookonce.Key{Source: "shop", ID: "other"})
		if !errors.Is(err, inbox.ErrNotFound) {
			e.Errorf("err %v", err)
		}
	})
}

func TestLettersComeOldestFirstInPages(t *testing.T) {
	each(t, func(e *env) {
		names := ids(25)
		for i, id := range names {
			d := e.event(id)
			d.Type = []string{"order.paid", "order.refunded", "ping", "order"}[i%4]
			e.bury(d)
			if i%5 != 0 { // several die in one microsecond
				e.clock.Add(time.Millisecond)
			}
		}
		for filter, want := range map[inbox.Filter]int{
			{}:                           25,
			{Type: "order.#"}:            19,
			{Type: "order.*"}:            13,
			{Type: "#.paid"}:             7,
			{Type: "ping"}:               6,
			{Source: "shop"}:             25,
			{Source: "other"}:            0,
			{Group: "h"}:                 0,
			{Error: "oo"}:                25,
			{Error: "Oo"}:                0,
			{Reason: inbox.Failed}:       25,
			{Reason: inbox.Expired}:      0,
			{Until: e.clock.Now()}:       25,
			{Since: e.clock.Now()}:       0,
			{Key: &hookonce.Key{}}:       0,
			{Type: "order.%_'\\.#.paid"}: 0,
		} {
			if got := readLetters(e, filter, 4); len(got) != want {
				e.Errorf("%+v: %d letters, want %d", filter, len(got), want)
			}
		}
		if got := readLetters(e, inbox.Filter{Key: &hookonce.Key{Source: "shop", ID: "k0003"}}, 4); len(got) != 1 {
			e.Errorf("by key: %d", len(got))
		}
		at := func(x, y inbox.Letter) int { return x.DeadAt.Compare(y.DeadAt) }
		if got := readLetters(e, inbox.Filter{}, 4); !slices.IsSortedFunc(got, at) {
			e.Error("not oldest first")
		}
		if _, _, err := e.Letters(e.Context(), inbox.Filter{}, "rubbish", 1); !errors.Is(err, inbox.ErrCursor) {
			e.Errorf("err %v", err)
		}
		if _, _, err := e.Letters(e.Context(), inbox.Filter{Type: "or*der"}, "", 1); err == nil {
			e.Error("a bad pattern was taken")
		}
	})
}

func readLetters(e *env, f inbox.Filter, page int) []inbox.Letter {
	e.Helper()
	seen := make(map[string]bool)
	var all []inbox.Letter
	var after inbox.Cursor
	for {
		some, next, err := e.Letters(e.Context(), f, after, page)
		e.must(err)
		for _, l := range some {
			if seen[l.Event.Key.ID] {
				e.Fatalf("%s twice", l.Event.Key.ID)
			}
			seen[l.Event.Key.ID] = true
		}
		all = append(all, some...)
		if next == "" {
			return all
		}
		after = next
	}
}

func TestDeadGroupsCountWhatDiedAlike(t *testing.T) {
	each(t, func(e *env) {
		first := e.clock.Now().Truncate(time.Microsecond)
		for i, text := range []string{
			`can't dial 'db-a' 10.0.0.7:5432: timeout after 30s`, `can't dial 'db-b' 10.0.0.9:5432: timeout after 31s`, `constraint "a_1" (SQLSTATE 23505)`,
		} {
			d := e.event(fmt.Sprint(i))
			e.must(e.Bury(e.Context(), e.run(d), inbox.Letter{Event: d.Event, Reason: inbox.Failed, Error: text}))
			e.clock.Add(time.Second)
		}
		groups, err := e.DeadGroups(e.Context(), inbox.Filter{})
		e.must(err)
		want := []inbox.DeadGroup{
			{
				Group: "g", Type: "order.paid", Reason: inbox.Failed, Error: "can't dial '?' ?.?.?.?:?: timeout after ?s", Count: 2,
				First: first, Last: first.Add(time.Second),
			},
			{
				Group: "g", Type: "order.paid", Reason: inbox.Failed, Error: `constraint "?" (SQLSTATE 23505)`, Count: 1,
				First: first.Add(2 * time.Second), Last: first.Add(2 * time.Second),
			},
		}
		if diff := cmp.Diff(want, groups); diff != "" {
			e.Error(diff)
		}
		groups, err = e.DeadGroups(e.Context(), inbox.Filter{Type: "*.refunded"})
		if err != nil || len(groups) != 0 {
			e.Errorf("%v, %v", groups, err)
		}
		counts, err := e.CountDead(e.Context())
		if err != nil || len(counts) != 1 || counts["g"] != 3 {
			e.Errorf("%v, %v", counts, err)
		}
	})
}

func TestParkMakesADeadLetterOfAnythingNotDone(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		park := func(d wire.Delivery, want bool) {
			e.Helper()
			ok, err := e.Park(ctx, inbox.Letter{Event: d.Event, Group: "g", Reason: inbox.Expired, Error: "too old"})
			e.must(err)
			if ok != want {
				e.Errorf("parked %t, want %t", ok, want)
			}
		}
		fresh := e.event("fresh")
		park(fresh, true)
		park(fresh, true) // again: the same letter
		if n := e.count("dead"); n != 1 {
			e.Errorf("%d letters", n)
		}
		e.want(e.begin(fresh), inbox.Settle)
		e.run(generation(fresh, 1)) // its replay runs, whatever its age

		retrying := e.event("retrying")
		e.must(e.Retry(ctx, e.run(retrying), inbox.Step{}, "no", e.clock.Now()))
		park(retrying, true)
		if r := e.record(retrying); r.State != inbox.Dead || r.LastError != "too old" {
			e.Errorf("record %+v", r)
		}

		running := e.event("running")
		l := e.run(running)
		park(running, true)
		if err := e.Finish(ctx, l); !errors.Is(err, inbox.ErrLeaseLost) {
			e.Errorf("err %v", err)
		}

		done := e.event("done")
		e.must(e.Finish(ctx, e.run(done)))
		park(done, false)
		if r := e.record(done); r.State != inbox.Done {
			e.Errorf("record %+v", r)
		}
	})
}

func TestParkTellsMessagesWithoutKeyApart(t *testing.T) {
	each(t, func(e *env) {
		for _, body := range []string{"one", "two", "one"} {
			_, err := e.Park(e.Context(), inbox.Letter{Event: hookonce.Event{Body: []byte(body)}, Group: "g", Reason: inbox.Invalid})
			e.must(err)
		}
		got := readLetters(e, inbox.Filter{Source: "-"}, 10)
		if len(got) != 2 || got[0].Event.Key.ID[0] != '!' {
			e.Errorf("letters %+v", got)
		}
	})
}

// Whoever sends an unrouted event on must not remove the letter that this very
// copy becomes when again nobody wants it.
func TestAnUnroutedEventThatCameBackIsNotTakenForTheOneSentOn(t *testing.T) {
	each(t, func(e *env) {
		ctx, d := e.Context(), e.event("a")
		letter := inbox.Letter{Event: d.Event, Group: queue.Unrouted, Reason: inbox.Unrouted}
		park := func() inbox.Letter {
			e.Helper()
			ok, err := e.Park(ctx, letter)
			e.must(err)
			if !ok {
				e.Fatal("not parked")
			}
			l, err := e.Letter(ctx, queue.Unrouted, d.Key)
			e.must(err)
			return l
		}
		mark := func(l inbox.Letter, want bool) {
			e.Helper()
			ok, err := e.replayed(queue.Unrouted, d, l.Generation+1, 0)
			e.must(err)
			if ok != want {
				e.Errorf("marked %t, want %t", ok, want)
			}
		}
		before := park()
		back := park() // sent on, and back before it was marked
		mark(before, false)
		mark(back, true)
		if n := e.count("dead"); n != 0 {
			e.Errorf("%d letters left", n)
		}
		rs, _, err := e.Events(ctx, inbox.Filter{}, "", 10)
		if err != nil || len(rs) != 0 {
			e.Errorf("events sent on are listed: %v, %v", rs, err)
		}
		again := park() // back after it was marked
		mark(before, false)
		mark(back, false)
		mark(again, true)
	})
}

func TestDiscardAndMarkReplayedNeedADeadLetter(t *testing.T) {
	each(t, func(e *env) {
		ctx, d := e.Context(), e.event("a")
		check := func(name string, ok bool, err error) {
			e.Helper()
			if ok || err != nil {
				e.Errorf("%s: %t, %v", name, ok, err)
			}
		}
		ok, err := e.discard("g", d, "")
		check("discard without record", ok, err)
		l := e.run(d)
		ok, err = e.discard("g", d, "")
		check("discard a running event", ok, err)
		e.must(e.Bury(ctx, l, inbox.Letter{Event: d.Event, Reason: inbox.Failed}))
		ok, err = e.replayed("g", d, 2, 0)
		check("skip a generation", ok, err)
		ok, err = e.replayed("g", d, 0, 0)
		check("go back a generation", ok, err)
		ok, err = e.discard("g", d, "wrong address")
		if !ok || err != nil {
			e.Errorf("discard: %t, %v", ok, err)
		}
		r := e.record(d)
		if n := r.Timeline[len(r.Timeline)-1]; r.State != inbox.Discarded || n.What != "discarded" || n.Detail != "wrong address" {
			e.Errorf("record %+v", r)
		}
	})
}

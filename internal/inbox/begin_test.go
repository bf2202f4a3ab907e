package inbox_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/wire"
)

func TestBeginRunsAnEventWithoutRecord(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		v := e.want(e.begin(d), inbox.Run)
		if l := v.Lease; l.Group != "g" || l.Key != d.Key || l.Attempt != 1 || l.Generation != 0 {
			e.Errorf("lease %+v", l)
		}
		if r := e.record(d); r.State != inbox.Running || r.Attempts != 1 || r.Type != "order.paid" {
			e.Errorf("record %+v", r)
		}
	})
}

func TestBeginSettlesWhatIsDoneOrDiscarded(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("done")
		e.must(e.Finish(e.Context(), e.run(d)))
		e.want(e.begin(d), inbox.Settle)
		e.want(e.begin(generation(d, 7)), inbox.Settle)

		d = e.event("discarded")
		e.bury(d)
		ok, err := e.discard("g", d, "a test order")
		e.must(err)
		if !ok {
			e.Fatal("not discarded")
		}
		e.want(e.begin(generation(d, 1)), inbox.Settle)
	})
}

func TestBeginWaitsForALiveLease(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.run(d)
		e.clock.Add(lease - 2*time.Second)
		v := e.want(e.begin(d), inbox.Wait)
		if left := v.Until.Sub(e.clock.Now().Truncate(time.Microsecond)); left != 2*time.Second {
			e.Errorf("waits %s, want the 2s that the lease has left", left)
		}
		e.want(e.begin(generation(d, 1)), inbox.Wait)
	})
}

func TestBeginTakesOverAnEndedLeaseAndCountsTheCrash(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		first := e.run(d)
		for crash := 1; crash < tries; crash++ {
			e.clock.Add(lease)
			v := e.want(e.begin(d), inbox.Run)
			if v.Crashes != crash || v.Lease.Attempt != crash+1 || v.Lease.Token == first.Token {
				e.Fatalf("crash %d: %+v", crash, v)
			}
		}
		e.clock.Add(lease)
		v := e.want(e.begin(d), inbox.Crash)
		if v.Crashes != tries {
			e.Errorf("crashes %d", v.Crashes)
		}
		e.must(e.Bury(e.Context(), v.Lease, inbox.Letter{Event: d.Event, Reason: inbox.Crashed, Error: "died"}))
		e.want(e.begin(d), inbox.Settle)
		// A replay has a budget of its own.
		v = e.want(e.begin(generation(d, 1)), inbox.Run)
		if v.Crashes != 0 || v.Lease.Attempt != 1 || v.Lease.Generation != 1 {
			e.Errorf("replayed: %+v", v)
		}
	})
}

func TestBeginWaitsForARetryAndRunsItWhenDue(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		due := e.clock.Now().Add(10 * time.Second).Truncate(time.Microsecond)
		e.must(e.Retry(e.Context(), e.run(d), inbox.Step{Name: "step"}, "no luck", due))
		if v := e.want(e.begin(d), inbox.Wait); !v.Until.Equal(due) {
			e.Errorf("until %s, want %s", v.Until, due)
		}
		e.clock.Add(9800 * time.Millisecond) // a little early is in time
		v := e.want(e.begin(d), inbox.Run)
		if v.Lease.Attempt != 2 || v.Steps["step"].State != inbox.StepFailed || v.Steps["step"].Detail != "no luck" {
			e.Errorf("verdict %+v", v)
		}
		if r := e.record(d); r.Attempts != 2 || r.LastError != "no luck" {
			e.Errorf("record %+v", r)
		}
	})
}

func TestBeginExpiresAnOldEventWithoutRecordOnly(t *testing.T) {
	each(t, func(e *env) {
		for _, age := range []time.Duration{46 * day, 400 * day} {
			d := e.event(age.String())
			d.ReceivedAt = e.clock.Now().Add(-age)
			e.want(e.begin(d), inbox.Expire)
		}
		d := e.event("known")
		e.must(e.Retry(e.Context(), e.run(d), inbox.Step{}, "no luck", e.clock.Now()))
		e.clock.Add(400 * day)
		e.run(d) // it has a record: whatever its age, it is unfinished
		if n := e.count("inbox"); n != 1 {
			e.Errorf("%d records, want 1: expired ones write none", n)
		}
	})
}

func TestBeginSettlesOutdatedGenerations(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.bury(d)
		e.want(e.begin(d), inbox.Settle) // dead, same generation
		l := e.run(generation(d, 1))
		e.want(e.begin(d), inbox.Settle) // running
		e.must(e.Retry(e.Context(), l, inbox.Step{}, "no", e.clock.Now()))
		e.want(e.begin(d), inbox.Settle) // retrying
		if l := e.run(generation(d, 1)); l.Attempt != 2 || l.Generation != 1 {
			e.Errorf("lease %+v", l)
		}
	})
}

func TestBeginRunsADeadLetterOfAHigherGeneration(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.bury(d)
		l := e.run(generation(d, 1))
		if l.Generation != 1 || l.Attempt != 1 {
			e.Errorf("lease %+v", l)
		}
		if n := e.count("dead"); n != 0 {
			e.Errorf("%d dead letters left", n)
		}
		// The delivery came first: the replay has nothing left to mark.
		ok, err := e.replayed("g", d, 1, 0)
		e.must(err)
		if ok || e.record(d).State != inbox.Running {
			e.Errorf("marked %t, %s", ok, e.record(d).State)
		}
	})
}

func TestBeginTakesACopyFromTheDeadQueueAsAReplay(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.bury(d)
		d.DeadCopy = true
		if l := e.run(d); l.Generation != 1 || l.Attempt != 1 {
			e.Errorf("lease %+v", l)
		}
		e.want(e.begin(d), inbox.Settle) // a second copy is outdated
	})
}

func TestBeginRunsARetryingEventOfAHigherGeneration(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.must(e.Retry(e.Context(), e.run(d), inbox.Step{}, "no", e.clock.Now().Add(time.Hour)))
		if l := e.run(generation(d, 2)); l.Generation != 2 || l.Attempt != 1 {
			e.Errorf("lease %+v", l)
		}
	})
}

func TestBeginAfterMarkReplayedIsTheFirstAttemptOfItsGeneration(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.bury(d)
		ok, err := e.replayed("g", d, 1, 0)
		e.must(err)
		if !ok || e.count("dead") != 0 {
			e.Fatalf("marked %t, %d dead letters", ok, e.count("dead"))
		}
		if l := e.run(generation(d, 1)); l.Attempt != 1 || l.Generation != 1 {
			e.Errorf("lease %+v", l)
		}
	})
}

func TestBeginKeepsGroupsApart(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.run(d)
		vs, err := e.Begin(e.Context(), "other", []wire.Delivery{d}, tries)
		e.must(err)
		e.want(vs[0], inbox.Run)
	})
}

func TestBeginAnswersASliceInItsOrder(t *testing.T) {
	each(t, func(e *env) {
		done, dead, fresh := e.event("done"), e.event("dead"), e.event("fresh")
		e.must(e.Finish(e.Context(), e.run(done)))
		e.bury(dead)
		old := e.event("old")
		old.ReceivedAt = old.ReceivedAt.Add(-46 * day)
		ds := []wire.Delivery{fresh, done, dead, fresh, generation(dead, 1), old, done}
		vs, err := e.Begin(e.Context(), "g", ds, tries)
		e.must(err)
		got := make([]inbox.Decision, len(vs))
		for i, v := range vs {
			got[i] = v.Decision
			if (v.Decision == inbox.Run) != (v.Lease.Key == ds[i].Key) {
				e.Errorf("%d: lease %+v", i, v.Lease)
			}
		}
		// The replay stands for the outdated copy of the dead letter too.
		want := []inbox.Decision{
			inbox.Run, inbox.Settle, inbox.Wait, inbox.Wait, inbox.Run, inbox.Expire, inbox.Settle,
		}
		if !slices.Equal(got, want) {
			e.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestBeginTakesHundredsAtOnce(t *testing.T) {
	each(t, func(e *env) {
		var ds []wire.Delivery
		for _, id := range ids(600) {
			ds = append(ds, e.event(id))
		}
		for _, want := range []inbox.Decision{inbox.Run, inbox.Wait} {
			vs, err := e.Begin(e.Context(), "g", ds, tries)
			e.must(err)
			for _, v := range vs {
				e.want(v, want)
			}
		}
	})
}

func TestBeginOf32AtOnceLetsExactlyOneRun(t *testing.T) {
	each(t, func(e *env) {
		for _, prepare := range []struct {
			name string
			do   func(d wire.Delivery)
		}{
			{"fresh", func(wire.Delivery) {}},
			{"retrying", func(d wire.Delivery) {
				e.must(e.Retry(e.Context(), e.run(d), inbox.Step{}, "no", e.clock.Now()))
			}},
			{"crashed", func(d wire.Delivery) {
				e.run(d)
				e.clock.Add(lease)
			}},
			{"dead copy", e.bury},
		} {
			d := e.event(prepare.name)
			prepare.do(d)
			d.DeadCopy = prepare.name == "dead copy"
			if runs := beginAtOnce(e, d, 32); runs != 1 {
				e.Errorf("%s: %d run", prepare.name, runs)
			}
		}
	})
}

func beginAtOnce(e *env, d wire.Delivery, n int) int {
	e.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	runs := 0
	for range n {
		wg.Go(func() {
			vs, err := e.Begin(e.Context(), "g", []wire.Delivery{d}, tries)
			if err != nil {
				e.Error(err)
				return
			}
			if vs[0].Decision == inbox.Run {
				mu.Lock()
				defer mu.Unlock()
				runs++
			}
		})
	}
	wg.Wait()
	return runs
}

// Slices that name the same events in opposite orders must not deadlock.
func TestBeginOfOverlappingSlicesEachEventRunsOnce(t *testing.T) {
	each(t, func(e *env) {
		var ds []wire.Delivery
		for _, id := range ids(64) {
			ds = append(ds, e.event(id))
		}
		var mu sync.Mutex
		runs := make(map[string]int)
		var wg sync.WaitGroup
		for i := range 8 {
			mine := slices.Clone(ds)
			if i%2 == 1 {
				slices.Reverse(mine)
			}
			wg.Go(func() {
				vs, err := e.Begin(e.Context(), "g", mine, tries)
				if err != nil {
					e.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for i, v := range vs {
					if v.Decision == inbox.Run {
						runs[mine[i].Key.ID]++
					}
				}
			})
		}
		wg.Wait()
		if len(runs) != len(ds) {
			e.Errorf("%d events ran, want %d", len(runs), len(ds))
		}
		for id, n := range runs {
			if n != 1 {
				e.Errorf("%s ran %d times", id, n)
			}
		}
	})
}

// A slow effect locks its record; other deliveries of its slice must not wait.
func TestBeginDoesNotWaitForARunningTransaction(t *testing.T) {
	db := open(t, inbox.Postgres)
	b := inbox.New(db, inbox.Postgres, inbox.Options{})
	if err := b.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := &env{T: t, Inbox: b, db: db, dialect: inbox.Postgres, clock: &clock{t: time.Now()}}
	slow, other := e.event("slow"), e.event("other")
	l := e.run(slow)
	e.must(e.step(l, inbox.Step{Name: "s"}, true, inTx(func(ctx context.Context) error {
		vs, err := b.Begin(ctx, "g", []wire.Delivery{slow, other}, tries)
		if err != nil {
			return err
		}
		if vs[0].Decision != inbox.Wait || vs[1].Decision != inbox.Run {
			return errors.New("the slice waited or ran twice")
		}
		lost, err := b.Renew(ctx, []inbox.Lease{l, vs[1].Lease})
		if err == nil && len(lost) > 0 {
			err = errors.New("a locked lease counts as lost")
		}
		return err
	})))
}

package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
)

// inTx makes a Step's function of one that needs no transaction.
func inTx(fn func(ctx context.Context) error) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, _ *sql.Tx) error { return fn(ctx) }
}

func TestStepCommitsEffectAndRecordTogether(t *testing.T) {
	each(t, func(e *env) {
		e.tickets()
		d := e.event("a")
		l := e.run(d)
		e.must(e.step(l, inbox.Step{Name: "one"}, false, insertTicket("a")))
		if r := e.record(d); r.State != inbox.Running || len(r.Steps) != 1 || r.Steps[0].State != inbox.StepDone {
			e.Errorf("record %+v", r)
		}
		e.must(e.step(l, inbox.Step{Name: "two", State: inbox.StepDone}, true, insertTicket("a")))
		if r := e.record(d); r.State != inbox.Done || len(r.Steps) != 2 || e.countTickets() != 2 {
			e.Errorf("record %+v, %d tickets", r, e.countTickets())
		}
		e.want(e.begin(d), inbox.Settle)
	})
}

func TestStepRollsBackOnErrorAndPanic(t *testing.T) {
	each(t, func(e *env) {
		e.tickets()
		d := e.event("a")
		l := e.run(d)
		boom := errors.New("boom")
		failing := func(ctx context.Context, tx *sql.Tx) error {
			e.must(insertTicket("a")(ctx, tx))
			return boom
		}
		if err := e.step(l, inbox.Step{Name: "s"}, true, failing); err != boom {
			e.Errorf("err %v, want fn's own", err)
		}
		func() {
			defer func() {
				if recover() != "ouch" {
					e.Error("the panic did not come through")
				}
			}()
			_ = e.step(l, inbox.Step{Name: "s"}, true, func(ctx context.Context, tx *sql.Tx) error {
				e.must(insertTicket("a")(ctx, tx))
				panic("ouch")
			})
		}()
		if r := e.record(d); r.State != inbox.Running || len(r.Steps) != 0 || e.countTickets() != 0 {
			e.Errorf("record %+v, %d tickets", r, e.countTickets())
		}
		e.must(e.step(l, inbox.Step{Name: "s"}, true, insertTicket("a")))
	})
}

func TestEveryFencedWriteFailsAfterATakeover(t *testing.T) {
	each(t, func(e *env) {
		e.tickets()
		ctx, d := e.Context(), e.event("a")
		frozen := e.run(d)
		e.clock.Add(lease)
		holder := e.run(d)
		for name, err := range map[string]error{
			"step":    e.step(frozen, inbox.Step{Name: "s"}, true, insertTicket("a")),
			"none":    e.step(frozen, inbox.Step{Name: "s"}, false, insertTicket("a")),
			"mark":    e.mark(frozen, inbox.Step{Name: "s", State: inbox.StepStarted}),
			"finish":  e.Finish(ctx, frozen),
			"retry":   e.Retry(ctx, frozen, inbox.Step{Name: "s"}, "x", e.clock.Now()),
			"bury":    e.Bury(ctx, frozen, inbox.Letter{Event: d.Event, Reason: inbox.Failed}),
			"release": e.Release(ctx, frozen, e.clock.Now()),
		} {
			if !errors.Is(err, inbox.ErrLeaseLost) {
				e.Errorf("%s: %v", name, err)
			}
		}
		if e.countTickets() != 0 || e.count("steps") != 0 || e.count("dead") != 0 {
			e.Error("a lost lease wrote")
		}
		lost, err := e.Renew(ctx, []inbox.Lease{frozen, holder})
		e.must(err)
		if len(lost) != 1 || lost[0] != frozen {
			e.Errorf("lost %+v", lost)
		}
		e.must(e.step(holder, inbox.Step{Name: "s"}, true, insertTicket("a")))
		if err := e.Finish(ctx, holder); !errors.Is(err, inbox.ErrLeaseLost) {
			e.Errorf("a done event has no holder: %v", err)
		}
	})
}

func TestAnEndedLeaseThatNobodyTookStillCommits(t *testing.T) {
	each(t, func(e *env) {
		l := e.run(e.event("a"))
		e.clock.Add(time.Hour)
		e.must(e.step(l, inbox.Step{Name: "s"}, true, nil))
	})
}

func TestRenewKeepsALease(t *testing.T) {
	each(t, func(e *env) {
		a, b := e.event("a"), e.event("b")
		leases := []inbox.Lease{e.run(a), e.run(b)}
		for range 6 {
			e.clock.Add(lease / 2)
			lost, err := e.Renew(e.Context(), leases)
			e.must(err)
			if len(lost) != 0 {
				e.Fatalf("lost %+v", lost)
			}
		}
		e.want(e.begin(a), inbox.Wait)
		lost, err := e.Renew(e.Context(), nil)
		if len(lost) != 0 || err != nil {
			e.Errorf("nothing to renew: %v, %v", lost, err)
		}
	})
}

func TestReleaseDoesNotCountTheAttempt(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.must(e.Release(e.Context(), e.run(d), e.clock.Now()))
		if r := e.record(d); r.State != inbox.Retrying || r.Attempts != 0 {
			e.Errorf("record %+v", r)
		}
		if l := e.run(d); l.Attempt != 1 {
			e.Errorf("lease %+v", l)
		}
	})
}

func TestAStepKeepsWhatIsKnownOfItsEffect(t *testing.T) {
	each(t, func(e *env) {
		ctx, d := e.Context(), e.event("a")
		l := e.run(d)
		e.must(e.mark(l, inbox.Step{Name: "mail", State: inbox.StepStarted}))
		e.must(e.Retry(ctx, l, inbox.Step{Name: "mail", State: inbox.StepUnknown}, "timeout after sending", e.clock.Now()))
		v := e.want(e.begin(d), inbox.Run)
		began := e.clock.Now().Truncate(time.Microsecond)
		if s := v.Steps["mail"]; s.State != inbox.StepUnknown || s.Attempts != 1 || !s.First.Equal(began) {
			e.Errorf("step %+v", s)
		}
		e.clock.Add(time.Minute)
		e.must(e.mark(v.Lease, inbox.Step{Name: "mail", State: inbox.StepStarted}))
		e.must(e.Retry(ctx, v.Lease, inbox.Step{Name: "mail"}, "refused", e.clock.Now()))
		if s := e.record(d).Steps[0]; s.State != inbox.StepFailed || s.Attempts != 2 || s.Detail != "refused" || !s.First.Equal(began) {
			e.Errorf("step %+v", s)
		}
	})
}

func TestAMarkRenewsALeaseThatIsHalfUsedUp(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		l := e.run(d)
		e.clock.Add(lease)
		e.must(e.mark(l, inbox.Step{Name: "mail", State: inbox.StepStarted}))
		e.want(e.begin(d), inbox.Wait)
	})
}

func TestATimelineTellsTheStory(t *testing.T) {
	each(t, func(e *env) {
		ctx, d := e.Context(), e.event("a")
		next := func() { e.clock.Add(time.Minute) }
		l := e.run(d)
		next()
		e.must(e.Retry(ctx, l, inbox.Step{Name: "s"}, "bad\x00 \xff text", e.clock.Now()))
		next()
		e.bury(d)
		next()
		ok, err := e.replayed("g", d, 1, 0)
		e.must(err)
		if !ok {
			e.Fatal("not marked")
		}
		next()
		e.must(e.step(e.run(generation(d, 1)), inbox.Step{Name: "s"}, true, nil))
		r := e.record(d)
		var got []string
		for _, n := range r.Timeline {
			got = append(got, n.What)
		}
		want := []string{"received", "failed", "dead", "replayed", "step done", "done"}
		if len(got) != len(want) {
			e.Fatalf("timeline %v", got)
		}
		for i := range want {
			if got[i] != want[i] {
				e.Fatalf("timeline %v", got)
			}
		}
		if r.Attempts != 3 || r.Generation != 1 {
			e.Errorf("record %+v", r)
		}
	})
}

package inbox_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/wire"
)

// buried is a dead letter with a ticket that is done and a mail that may be.
func (e *env) buried(d wire.Delivery) inbox.Letter {
	e.Helper()
	l := e.run(d)
	e.must(e.mark(l, inbox.Step{Name: "ticket"}))
	e.must(e.apply(onceWork(l, inbox.Step{Name: "mail", State: inbox.StepStarted}, "order 1")).Err)
	e.must(e.Bury(e.Context(), l, inbox.Letter{Event: d.Event, Reason: inbox.Unknown, Step: "mail", StepState: inbox.StepUnknown}))
	letter, err := e.Letter(e.Context(), "g", d.Key)
	e.must(err)
	if letter.Open != "mail" {
		e.Fatalf("letter %+v", letter)
	}
	return letter
}

func TestAPersonDecidesAboutAnUnknownStep(t *testing.T) {
	for name, done := range map[string]bool{"done": true, "rerun": false} {
		t.Run(name, func(t *testing.T) {
			each(t, func(e *env) {
				ctx, d := e.Context(), e.event("a")
				e.buried(d)
				if _, err := e.Resolve(ctx, "g", d.Key, 1, done, "asked the customer"); !errors.Is(err, inbox.ErrNotDead) {
					e.Errorf("another generation: %v", err)
				}
				for range 2 { // the command may be repeated
					steps, err := e.Resolve(ctx, "g", d.Key, 0, done, "asked the customer")
					e.must(err)
					if len(steps) > 0 && !slices.Equal(steps, []string{"mail"}) {
						e.Errorf("steps %v", steps)
					}
				}
				letter, err := e.Letter(ctx, "g", d.Key)
				e.must(err)
				if letter.Open != "" {
					e.Errorf("letter %+v", letter)
				}
				v := e.want(e.begin(generation(d, 1)), inbox.Run)
				want := inbox.StepFailed
				if done {
					want = inbox.StepDone
				}
				if s := v.Steps["mail"]; s.State != want || !s.First.IsZero() || v.Steps["ticket"].State != inbox.StepDone {
					e.Errorf("steps %+v", v.Steps)
				}
				if r := e.record(d); !slices.ContainsFunc(r.Timeline, func(n inbox.Note) bool {
					return n.What == "unknown "+name && n.Detail == "mail: asked the customer"
				}) {
					e.Errorf("timeline %+v", r.Timeline)
				}
				// What is done for the one event is done for the other.
				other := e.apply(onceWork(e.run(e.event("b")), inbox.Step{Name: "mail", State: inbox.StepStarted}, "order 1"))
				if done != (other.State == inbox.StepSkipped) || !done && other.Until.IsZero() {
					e.Errorf("another event of the value: %+v", other)
				}
			})
		})
	}
}

func TestForceOpensARunWithoutTheNamedSteps(t *testing.T) {
	each(t, func(e *env) {
		ctx, d := e.Context(), e.event("a")
		l := e.run(d)
		for _, name := range []string{"ticket", "count"} {
			e.must(e.mark(l, inbox.Step{Name: name}))
		}
		e.must(e.Bury(ctx, l, inbox.Letter{Event: d.Event, Reason: inbox.Failed, Step: "mail"}))
		if _, err := e.Force(ctx, "g", d.Key, 0, []string{"tikcet"}, "x"); !errors.Is(err, inbox.ErrNotFound) {
			e.Errorf("a step that is not there: %v", err)
		}
		if _, err := e.Force(ctx, "g", d.Key, 3, nil, "x"); !errors.Is(err, inbox.ErrNotDead) {
			e.Errorf("another generation: %v", err)
		}
		for _, steps := range [][]string{nil, {"ticket"}} { // the last word counts
			run, err := e.Force(ctx, "g", d.Key, 0, steps, "wrong price")
			e.must(err)
			if run != 1 {
				e.Errorf("run %d", run)
			}
		}
		ok, err := e.replayed("g", d, 1, 1)
		e.must(err)
		if !ok {
			e.Error("not marked")
		}
		forced := generation(d, 1)
		forced.Run = 1
		v := e.want(e.begin(forced), inbox.Run)
		var names []string
		for name := range v.Steps {
			names = append(names, name)
		}
		if diff := cmp.Diff([]string{"count"}, names); diff != "" || v.Lease.Run != 1 {
			e.Errorf("lease %+v\n%s", v.Lease, diff)
		}
	})
}

func TestForceLeavesAnUnknownStepToItsOwnDecision(t *testing.T) {
	each(t, func(e *env) {
		d := e.event("a")
		e.buried(d)
		if _, err := e.Force(e.Context(), "g", d.Key, 0, []string{"ticket"}, "x"); err == nil {
			e.Error("the mail would be sent a second time, under another key")
		}
		_, err := e.Force(e.Context(), "g", d.Key, 0, nil, "all of it")
		e.must(err)
	})
}

func TestAPauseLastsUntilResumed(t *testing.T) {
	each(t, func(e *env) {
		ctx := e.Context()
		for _, c := range []struct {
			do   func() (bool, error)
			news bool
			left int
		}{
			{func() (bool, error) { return e.Pause(ctx, "g", "the CRM moves") }, true, 1},
			{func() (bool, error) { return e.Pause(ctx, "g", "again") }, false, 1},
			{func() (bool, error) { return e.Resume(ctx, "other") }, false, 1},
			{func() (bool, error) { return e.Resume(ctx, "g") }, true, 0},
		} {
			news, err := c.do()
			e.must(err)
			paused, err := e.Paused(ctx)
			e.must(err)
			if news != c.news || len(paused) != c.left || c.left > 0 && paused["g"].Reason != "the CRM moves" {
				e.Errorf("news %t, paused %+v; want %t, %d", news, paused, c.news, c.left)
			}
		}
	})
}

func TestADutyIsOneProcessAtATime(t *testing.T) {
	each(t, func(e *env) {
		mine, yours := [16]byte{1}, [16]byte{2}
		for i, c := range []struct {
			token [16]byte
			after time.Duration
			want  bool
		}{{mine, 0, true}, {yours, time.Second, false}, {mine, 58 * time.Second, true}, {yours, 30 * time.Second, false}, {yours, 31 * time.Second, true}, {mine, 0, false}} {
			e.clock.Add(c.after)
			got, err := e.Duty(e.Context(), "sweep g", c.token, time.Minute)
			e.must(err)
			if got != c.want {
				e.Errorf("%d: %t", i, got)
			}
		}
	})
}

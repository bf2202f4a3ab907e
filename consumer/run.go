package consumer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
)

// timeout bounds one attempt at the step.
func (s Step) timeout() time.Duration {
	if s.Timeout > 0 {
		return s.Timeout
	}
	return defaultStepTimeout
}

// validate finds a step that cannot be run.
func (s Step) validate() error {
	kinds := 0
	for _, has := range []bool{s.Tx != nil, s.Statements != nil, s.Do != nil} {
		if has {
			kinds++
		}
	}
	switch {
	case s.Name == "":
		return errors.New("a step has no name")
	case kinds != 1:
		return fmt.Errorf("step %s needs exactly one of Tx, Statements and Do", s.Name)
	case s.OnUnknown != "" && s.OnUnknown != Rerun && s.OnUnknown != Park:
		return fmt.Errorf("step %s: OnUnknown is %q; it is %q or %q", s.Name, s.OnUnknown, Rerun, Park)
	}
	return nil
}

// names are the step's name and its former ones.
func (s Step) names() []string { return append([]string{s.Name}, s.Was...) }

// record is what is known of the step in this run, under whichever name.
func (s Step) record(steps map[string]inbox.Step) inbox.Step {
	for _, name := range s.names() {
		if r, ok := steps[name]; ok {
			return r
		}
	}
	return inbox.Step{Name: s.Name}
}

// recorded says whether the step needs no more work in this run.
func (s Step) recorded(steps map[string]inbox.Step) bool {
	switch s.record(steps).State {
	case inbox.StepDone, inbox.StepSkipped, inbox.StepStale:
		return true
	}
	return false
}

// open says that an effect was started and has no end.
func open(r inbox.Step) bool { return r.State == inbox.StepStarted || r.State == inbox.StepUnknown }

// stepRun is a step in an attempt.
type stepRun struct {
	Step
	a    *attempt
	last bool
	// was is the step's record before this attempt. Its name is the one that
	// everything is recorded under, so that a rename changes no downstream key.
	was inbox.Step
}

// step runs one step that is not recorded yet.
func (a *attempt) step(ctx context.Context, s Step, last bool) error {
	r := &stepRun{Step: s, a: a, last: last, was: s.record(a.v.Steps)}
	w := inbox.Work{Lease: a.v.Lease, Step: inbox.Step{Name: r.was.Name}, Last: last}
	skip, err := r.prepare(&w)
	if err != nil {
		return r.fail(err)
	}
	switch {
	case skip:
		w.Step.State, w.Step.Detail = inbox.StepSkipped, "its condition is false"
		return r.fail(a.mark(ctx, w).Err)
	case s.Do != nil:
		return r.outside(ctx, w)
	}
	return r.inside(ctx, w)
}

// prepare computes what decides about the step.
func (r *stepRun) prepare(w *inbox.Work) (skip bool, err error) {
	e := r.a.r.Event
	err = call(func() error {
		if r.When != nil {
			ok, err := r.When(e)
			if err != nil || !ok {
				skip = err == nil
				return err
			}
		}
		if r.OncePer != nil {
			value, err := r.OncePer(e)
			if err != nil {
				return fmt.Errorf("once_per: %w", err)
			}
			if value == "" {
				return errors.New("once_per: the event has no value there")
			}
			w.Once = &inbox.Once{Value: value, Was: r.others()}
		}
		if r.OnlyLatest != nil {
			entity, version, err := r.OnlyLatest(e)
			if err != nil {
				return fmt.Errorf("only_latest: %w", err)
			}
			w.Latest = &inbox.Latest{Entity: entity, Version: version, Was: r.others()}
		}
		return nil
	})
	return skip, err
}

// others are the step's names beside the one that is in use.
func (r *stepRun) others() []string {
	return slices.DeleteFunc(r.names(), func(name string) bool { return name == r.was.Name })
}

// fail makes an error the step's failure. What may have happened once stays
// unknown, whatever the later tries say.
func (r *stepRun) fail(err error) error {
	if err == nil || errors.Is(err, inbox.ErrLeaseLost) {
		return err
	}
	f := &failure{step: r.was.Name, state: inbox.StepFailed, err: err}
	if open(r.was) {
		f.state = inbox.StepUnknown
	}
	var held *inbox.HeldError
	f.park = errors.As(err, &held)
	return f
}

// inside runs a step whose effect is in the database.
func (r *stepRun) inside(ctx context.Context, w inbox.Work) error {
	a, timeout := r.a, r.timeout()
	effect := a.g.c.Metrics.Effect.WithLabelValues(a.g.Name, r.Name)
	var busy time.Duration
	if r.Statements != nil {
		err := call(func() (err error) {
			w.Statements, err = r.Statements(a.r.Event)
			return err
		})
		if err != nil {
			return r.fail(err)
		}
		if w.Statements == nil {
			w.Statements = []inbox.Statement{}
		}
	} else {
		w.Tx = func(tx *sql.Tx) error {
			ctx, cancel := context.WithTimeoutCause(ctx, timeout, tooLong(r.Name, timeout))
			defer cancel()
			err := call(func() error { return r.Tx(ctx, tx, a.r.Event) })
			if cause := context.Cause(ctx); err != nil && errors.Is(err, context.DeadlineExceeded) && cause != nil {
				err = cause
			}
			return err
		}
		w = timed(w, &busy)
	}
	began := time.Now()
	res, err := a.carryOut(w, r.OwnTx, &busy)
	if r.Tx == nil {
		busy = time.Since(began)
	}
	effect.Observe(busy.Seconds())
	if err == nil {
		err = res.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = tooLong(r.Name, timeout)
	}
	return r.fail(orWait(res, err))
}

// timed measures how long a work's function takes.
func timed(w inbox.Work, busy *time.Duration) inbox.Work {
	fn := w.Tx
	w.Tx = func(tx *sql.Tx) error {
		began := time.Now()
		defer func() { *busy = time.Since(began) }()
		return fn(tx)
	}
	return w
}

// carryOut runs a work in a transaction that it shares, or in its own.
func (a *attempt) carryOut(w inbox.Work, own bool, busy *time.Duration) (inbox.Result, error) {
	if !own {
		return a.g.works.do(w, busy)
	}
	results, err := a.g.works.carryOut([]inbox.Work{w})
	if err != nil {
		return inbox.Result{}, err
	}
	return results[0], nil
}

// mark records a work that writes nothing else, and insists on it.
func (a *attempt) mark(ctx context.Context, w inbox.Work) inbox.Result {
	var res inbox.Result
	err := a.g.c.insist(ctx, "inbox record", func() (err error) {
		res, err = a.g.marks.do(w, nil)
		return err
	})
	if err != nil {
		res.Err = err
	}
	return res
}

// orWait turns a result that asks for patience into the attempt's end.
func orWait(res inbox.Result, err error) error {
	if err == nil && !res.Until.IsZero() {
		return &waitError{res.Until}
	}
	return err
}

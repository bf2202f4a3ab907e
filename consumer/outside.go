package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
)

// outside runs a step whose effect is outside the database: started, committed;
// the effect; done, committed. Whatever ends in between leaves it started,
// which nobody can tell from done.
func (r *stepRun) outside(ctx context.Context, w inbox.Work) error {
	a := r.a
	if open(r.was) {
		if err := r.parked(a.g.c.Now(), "the effect was started and has no end: its process died, or its answer was lost"); err != nil {
			return err
		}
	}
	start := w
	start.Step.State, start.Last = inbox.StepStarted, false
	res := a.mark(ctx, start)
	switch {
	case res.Err != nil || !res.Until.IsZero():
		return r.fail(orWait(res, res.Err))
	case res.State != inbox.StepStarted: // skipped or stale
		if r.last {
			return a.finish(ctx)
		}
		return nil
	}
	if r.was.First.IsZero() {
		r.was.First = a.g.c.Now()
	}
	err := r.try(ctx, w)
	if err == nil {
		w.Step.State = inbox.StepDone
		// The effect has happened: the record outlives the shutdown.
		late, cancel := a.g.c.lateContext(ctx)
		defer cancel()
		return r.fail(a.mark(late, w).Err)
	}
	end := r.ended(ctx, err)
	var f *failure
	if ctx.Err() != nil && errors.As(end, &f) && f.state == inbox.StepFailed {
		// The event is given back. That its effect did not happen is noted first:
		// left as started, it would be unknown to whoever runs it next.
		w.Step.State, w.Last = inbox.StepFailed, false
		late, cancel := a.g.c.lateContext(ctx)
		defer cancel()
		if res := a.mark(late, w); res.Err != nil {
			return r.fail(res.Err)
		}
	}
	return end
}

// try calls Do once.
func (r *stepRun) try(ctx context.Context, w inbox.Work) error {
	a, l := r.a, r.a.v.Lease
	subject := a.r.Key.String()
	if w.Once != nil {
		subject = w.Once.Value
	}
	t := Try{
		Event: a.r.Event, Group: a.g.Name, Step: r.Name,
		Key:     DownstreamKey(subject, a.g.Name, r.was.Name, l.Run),
		Attempt: l.Attempt, MaxAttempts: a.g.Retry.MaxAttempts, RetryIn: a.retryIn,
	}
	began, timeout := time.Now(), r.timeout()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, tooLong(r.Name, timeout))
	defer cancel()
	err := call(func() error { return r.Do(ctx, t) })
	a.g.c.Metrics.Effect.WithLabelValues(a.g.Name, r.Name).Observe(time.Since(began).Seconds())
	if notBegun := (*notBegunError)(nil); err != nil && ctx.Err() != nil && !errors.As(err, &notBegun) {
		// It was broken off: how far it had come, nobody knows.
		err = Unknown(fmt.Errorf("%w: %w", context.Cause(ctx), err))
	}
	return err
}

// ended is what a failed try leads to.
func (r *stepRun) ended(ctx context.Context, err error) error {
	var unknown *unknownError
	var panicked *PanicError
	f := &failure{step: r.was.Name, state: inbox.StepFailed, err: err}
	if errors.As(err, &unknown) || errors.As(err, &panicked) || open(r.was) {
		f.state = inbox.StepUnknown
		if ctx.Err() != nil {
			return f // the lease is lost, or the shutdown gives the event back: it stays started
		}
		if perr := r.parked(r.a.g.c.Now().Add(r.a.retryIn), err.Error()); perr != nil {
			return perr
		}
	}
	return f
}

// parked is the failure that leaves an effect with an unknown end to a person;
// nil when it may be tried again at the given time.
func (r *stepRun) parked(at time.Time, why string) error {
	within := r.RerunWithin
	if within <= 0 {
		within = defaultRerunWithin
	}
	if r.OnUnknown != Park {
		if r.was.First.IsZero() || !at.After(r.was.First.Add(within)) {
			return nil
		}
		why = fmt.Sprintf("%s; first tried at %s, more than %s before a further try", why, r.was.First.UTC().Format(time.RFC3339), within)
	}
	return &failure{step: r.was.Name, state: inbox.StepUnknown, park: true, err: errors.New(why)}
}

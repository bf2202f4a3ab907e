package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
)

// attempt is one try at an event, under a lease.
type attempt struct {
	g   *group
	sub queue.Subscription
	r   queue.Received
	v   inbox.Verdict
	// retryIn is the delay before the next try if this one fails; 0 when it is
	// the last.
	retryIn time.Duration
}

// failure is an attempt's end that is not success.
type failure struct {
	step string
	// state is what is recorded of the step.
	state inbox.StepState
	// park makes the event a dead letter now, reason "unknown": a person has to
	// decide what became of the step's effect.
	park bool
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// waitError is an attempt's end that counts as none: another event is at the
// same value or entity.
type waitError struct{ until time.Time }

func (e *waitError) Error() string { return "another event comes first" }

// attempt runs the steps under the lease and settles by how they end.
func (g *group) attempt(ctx context.Context, sub queue.Subscription, r queue.Received, v inbox.Verdict) {
	a := &attempt{g: g, sub: sub, r: r, v: v}
	if v.Lease.Attempt < g.Retry.MaxAttempts {
		a.retryIn = rand.N(g.Retry.ceiling(v.Lease.Attempt)) + 1
	}
	held, release := g.c.leases.hold(ctx, v.Lease)
	err := a.run(held)
	lost := errors.Is(err, inbox.ErrLeaseLost) || errors.Is(context.Cause(held), inbox.ErrLeaseLost)
	release()
	var wait *waitError
	switch {
	case err == nil:
		g.c.Metrics.Attempts.WithLabelValues(g.Name, "done").Inc()
		g.c.Metrics.Event.WithLabelValues(g.Name).Observe(g.c.Now().Sub(r.ReceivedAt).Seconds())
		g.c.Logger.Debug("event done", "group", g.Name, "key", r.Key.String(), "type", r.Type, "attempt", v.Lease.Attempt)
		g.ack(ctx, sub, r)
	case lost:
		g.c.Metrics.Attempts.WithLabelValues(g.Name, "lease_lost").Inc()
		g.c.Logger.Warn("lease lost; the event runs elsewhere", "group", g.Name, "key", r.Key.String())
		g.later(ctx, sub, r, g.c.Now().Add(leaseLostDelay))
	case errors.As(err, &wait):
		a.putOff(ctx, wait.until)
	case ctx.Err() != nil:
		a.giveBack(ctx)
	default:
		a.failed(ctx, err)
	}
}

// run does what the group does with an event.
func (a *attempt) run(ctx context.Context) error {
	if len(a.g.routes) > 0 {
		return a.handler(ctx)
	}
	return a.steps(ctx)
}

// steps runs what is not recorded yet.
func (a *attempt) steps(ctx context.Context) error {
	for i, s := range a.g.Steps {
		last := i == len(a.g.Steps)-1
		if s.recorded(a.v.Steps) {
			if last {
				return a.finish(ctx)
			}
			continue
		}
		if err := a.step(ctx, s, last); err != nil {
			return err
		}
	}
	return nil
}

// finish records that nothing is left to do.
func (a *attempt) finish(ctx context.Context) error {
	return a.mark(ctx, inbox.Work{Lease: a.v.Lease, Last: true}).Err
}

// failed records the failure, then moves the delivery: the record comes first,
// so that a crash in between leaves a delivery that waits for its due time.
func (a *attempt) failed(ctx context.Context, cause error) {
	g, r, l := a.g, a.r, a.v.Lease
	f := &failure{}
	if !errors.As(cause, &f) {
		f = &failure{err: cause}
	}
	attrs := []any{"group", g.Name, "key", r.Key.String(), "type", r.Type, "step", f.step, "attempt", l.Attempt, "err", cause}
	if p := (*PanicError)(nil); errors.As(cause, &p) {
		g.c.Logger.Error("step panicked", append(attrs, "stack", string(p.Stack))...)
	}
	fate := g.Retry.decide(cause, l.Attempt, a.retryIn)
	if f.park || fate.dead {
		reason := inbox.Failed
		switch {
		case f.park || f.state == inbox.StepUnknown:
			reason = inbox.Unknown // replaying it is for a person to decide
		case fate.permanent:
			reason = inbox.Permanent
		}
		g.bury(ctx, a.sub, r, l, inbox.Letter{Reason: reason, Step: f.step, StepState: f.state, Error: cause.Error()})
		return
	}
	g.c.Metrics.Attempts.WithLabelValues(g.Name, "failed").Inc()
	g.c.Metrics.Retries.WithLabelValues(g.Name).Inc()
	due := g.c.Now().Add(fate.delay)
	g.c.Logger.Warn("attempt failed; will be retried", append(attrs, "due", due.UTC().Format(time.RFC3339Nano))...)
	err := g.c.insist(ctx, "inbox record", func() error {
		return g.c.Inbox.Retry(ctx, l, inbox.Step{Name: f.step, State: f.state}, cause.Error(), due)
	})
	if err != nil {
		g.notRecorded(ctx, a.sub, r, err)
		return
	}
	d := r.Delivery
	d.Attempt, d.Generation, d.Run, d.Due, d.DeadCopy = l.Attempt, l.Generation, l.Run, due, false
	g.settled(a.sub.Retry(ctx, r, d), r, "move to retry")
}

// putOff gives the event back until another one is through. It is no attempt.
func (a *attempt) putOff(ctx context.Context, until time.Time) {
	err := a.g.c.insist(ctx, "inbox record", func() error { return a.g.c.Inbox.Release(ctx, a.v.Lease, until) })
	if err != nil {
		a.g.notRecorded(ctx, a.sub, a.r, err)
		return
	}
	a.g.later(ctx, a.sub, a.r, until)
}

// giveBack ends an attempt that the shutdown broke off.
func (a *attempt) giveBack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateWork)
	defer cancel()
	if err := a.g.c.Inbox.Release(ctx, a.v.Lease, a.g.c.Now()); err != nil {
		a.g.c.Logger.Warn("event could not be given back; its lease will end", "group", a.g.Name, "key", a.r.Key.String(), "err", err)
	}
	a.g.settled(a.sub.Requeue(ctx, a.r), a.r, "requeue")
}

// bury makes the event a dead letter: the row, then the copy, then the ack.
func (g *group) bury(ctx context.Context, sub queue.Subscription, r queue.Received, l inbox.Lease, letter inbox.Letter) {
	letter.Event, letter.Group, letter.Attempts = r.Event, g.Name, l.Attempt
	err := g.c.insist(ctx, "dead letter record", func() error { return g.c.Inbox.Bury(ctx, l, letter) })
	if err != nil {
		g.notRecorded(ctx, sub, r, err)
		return
	}
	g.c.Metrics.Attempts.WithLabelValues(g.Name, "dead").Inc()
	g.c.Metrics.Dead.WithLabelValues(g.Name, string(letter.Reason)).Inc()
	g.c.Logger.Error("event is a dead letter now", "group", g.Name, "key", r.Key.String(), "type", r.Type,
		"reason", string(letter.Reason), "step", letter.Step, "attempt", l.Attempt, "err", letter.Error)
	d := r.Delivery
	d.Attempt, d.Generation, d.Run, d.DeadCopy, d.Reason = l.Attempt, l.Generation, l.Run, true, string(letter.Reason)
	g.settled(sub.Bury(ctx, r, d), r, "move to dead letters")
}

// notRecorded leaves an event whose outcome could not be written to whoever
// holds its lease now, or to its lease's end.
func (g *group) notRecorded(ctx context.Context, sub queue.Subscription, r queue.Received, err error) {
	if errors.Is(err, inbox.ErrLeaseLost) {
		g.later(ctx, sub, r, g.c.Now().Add(leaseLostDelay))
		return
	}
	g.settled(sub.Requeue(context.WithoutCancel(ctx), r), r, "requeue")
}

// tooLong is the cause of a step's timeout.
func tooLong(step string, timeout time.Duration) error {
	return fmt.Errorf("step %s took longer than %s", step, timeout)
}

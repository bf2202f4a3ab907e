package consumer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

// group runs the deliveries of one consumer group.
type group struct {
	Group
	c *Consumer
	// alone is held shared by ordinary attempts and exclusively by an event
	// whose process has died before: if it dies again, nothing dies with it.
	alone sync.RWMutex
}

const (
	// leaseLostDelay is how long a delivery rests whose event went to another consumer.
	leaseLostDelay = time.Second
	// crashesAlone is the number of crashes from which on an event runs alone.
	crashesAlone = 2
)

// final says that repeating the database operation cannot help.
func final(err error) bool { return errors.Is(err, inbox.ErrLeaseLost) }

// handle takes one delivery from its verdict to its settling.
func (g *group) handle(ctx context.Context, sub queue.Subscription, r queue.Received) {
	if r.Invalid != nil {
		g.c.park(ctx, sub, r, inbox.Letter{Group: g.Name, Event: r.Event, Reason: inbox.Invalid, Error: r.Invalid.Error()})
		return
	}
	if !matches(g.Group, r.Event) {
		g.unmatched(ctx, sub, r)
		return
	}
	var v inbox.Verdict
	err := g.c.insist(ctx, "inbox record", func() error {
		vs, err := g.c.Inbox.Begin(ctx, g.Name, []wire.Delivery{r.Delivery}, g.Retry.MaxCrashes)
		if err == nil {
			v = vs[0]
		}
		return err
	})
	if err != nil {
		g.settled(sub.Requeue(context.WithoutCancel(ctx), r), r, "requeue")
		return
	}
	switch v.Decision {
	case inbox.Settle:
		g.c.Metrics.Attempts.WithLabelValues(g.Name, "duplicate").Inc()
		g.settled(sub.Ack(ctx, r), r, "ack")
	case inbox.Wait:
		g.later(ctx, sub, r, v.Until)
	case inbox.Expire:
		g.c.park(ctx, sub, r, inbox.Letter{
			Group: g.Name, Event: r.Event, Reason: inbox.Expired, Generation: r.Generation,
			Error: "received longer ago than the inbox remembers, and no record of it is left",
		})
	case inbox.Crash:
		g.bury(ctx, sub, r, v.Lease, inbox.Crashed, "", fmt.Sprintf("its process died %d times while it ran", v.Crashes))
	case inbox.Run:
		g.attempt(ctx, sub, r, v)
	}
}

// attempt runs the steps under the lease and settles by how they end.
func (g *group) attempt(ctx context.Context, sub queue.Subscription, r queue.Received, v inbox.Verdict) {
	if v.Crashes >= crashesAlone {
		g.alone.Lock()
		defer g.alone.Unlock()
	} else {
		g.alone.RLock()
		defer g.alone.RUnlock()
	}
	held, release := g.c.leases.hold(ctx, v.Lease)
	step, err := g.steps(held, v, r.Event)
	lost := errors.Is(err, inbox.ErrLeaseLost) || errors.Is(context.Cause(held), inbox.ErrLeaseLost)
	release()

	switch {
	case err == nil:
		g.c.Metrics.Attempts.WithLabelValues(g.Name, "done").Inc()
		g.c.Metrics.Event.WithLabelValues(g.Name).Observe(g.c.Now().Sub(r.ReceivedAt).Seconds())
		g.c.Logger.Debug("event done", "group", g.Name, "key", r.Key.String(), "type", r.Type, "attempt", v.Lease.Attempt)
		g.settled(sub.Ack(ctx, r), r, "ack")
	case lost:
		g.c.Metrics.Attempts.WithLabelValues(g.Name, "lease_lost").Inc()
		g.c.Logger.Warn("lease lost; the event runs elsewhere", "group", g.Name, "key", r.Key.String())
		g.later(ctx, sub, r, g.c.Now().Add(leaseLostDelay))
	case ctx.Err() != nil:
		g.giveBack(ctx, sub, r, v.Lease)
	default:
		g.failed(ctx, sub, r, v.Lease, step, err)
	}
}

// steps runs what is not recorded yet and returns the step that failed.
func (g *group) steps(ctx context.Context, v inbox.Verdict, e hookonce.Event) (string, error) {
	for i, s := range g.Steps {
		last := i == len(g.Steps)-1
		if s.recorded(v.Steps) {
			if last {
				return s.Name, g.c.insist(ctx, "inbox record", func() error { return g.c.Inbox.Finish(ctx, v.Lease) })
			}
			continue
		}
		began := time.Now()
		err := g.step(ctx, v.Lease, s, last, e)
		g.c.Metrics.Effect.WithLabelValues(g.Name, s.Name).Observe(time.Since(began).Seconds())
		if err != nil {
			return s.Name, err
		}
	}
	return "", nil
}

func (g *group) step(ctx context.Context, l inbox.Lease, s Step, last bool, e hookonce.Event) error {
	timeout := s.Timeout
	if timeout <= 0 {
		timeout = defaultStepTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("step %s took longer than %s", s.Name, timeout))
	defer cancel()
	err := g.c.Inbox.Step(ctx, l, inbox.Step{Name: s.Name, State: inbox.StepDone}, last, func(ctx context.Context, tx *sql.Tx) error {
		return call(func() error { return s.Tx(ctx, tx, e) })
	})
	if cause := context.Cause(ctx); err != nil && errors.Is(err, context.DeadlineExceeded) && cause != nil {
		return cause
	}
	return err
}

// failed records the failure, then moves the delivery: the record comes first,
// so that a crash in between leaves a delivery that waits for its due time.
func (g *group) failed(ctx context.Context, sub queue.Subscription, r queue.Received, l inbox.Lease, step string, cause error) {
	attrs := []any{"group", g.Name, "key", r.Key.String(), "type", r.Type, "step", step, "attempt", l.Attempt, "err", cause}
	if p := (*PanicError)(nil); errors.As(cause, &p) {
		g.c.Logger.Error("step panicked", append(attrs, "stack", string(p.Stack))...)
	}
	f := g.Retry.decide(cause, l.Attempt, func(d time.Duration) time.Duration { return rand.N(d) + 1 })
	if f.dead {
		reason := inbox.Failed
		if f.permanent {
			reason = inbox.Permanent
		}
		g.bury(ctx, sub, r, l, reason, step, cause.Error())
		return
	}
	g.c.Metrics.Attempts.WithLabelValues(g.Name, "failed").Inc()
	g.c.Metrics.Retries.WithLabelValues(g.Name).Inc()
	due := g.c.Now().Add(f.delay)
	g.c.Logger.Warn("attempt failed; will be retried", append(attrs, "due", due.UTC().Format(time.RFC3339Nano))...)
	err := g.c.insist(ctx, "inbox record", func() error { return g.c.Inbox.Retry(ctx, l, step, cause.Error(), due) })
	if err != nil {
		g.notRecorded(ctx, sub, r, err)
		return
	}
	d := r.Delivery
	d.Attempt, d.Generation, d.Run, d.Due, d.DeadCopy = l.Attempt, l.Generation, l.Run, due, false
	g.settled(sub.Retry(ctx, r, d), r, "move to retry")
}

// bury makes the event a dead letter: the row, then the copy, then the ack.
func (g *group) bury(ctx context.Context, sub queue.Subscription, r queue.Received, l inbox.Lease, reason inbox.Reason, step, cause string) {
	letter := inbox.Letter{
		Event: r.Event, Group: g.Name, Reason: reason, Step: step, Error: cause,
		Attempts: l.Attempt, Generation: l.Generation, Run: l.Run, DeadAt: g.c.Now(),
	}
	err := g.c.insist(ctx, "dead letter record", func() error { return g.c.Inbox.Bury(ctx, l, letter) })
	if err != nil {
		g.notRecorded(ctx, sub, r, err)
		return
	}
	g.c.Metrics.Attempts.WithLabelValues(g.Name, "dead").Inc()
	g.c.Metrics.Dead.WithLabelValues(g.Name, string(reason)).Inc()
	g.c.Logger.Error("event is a dead letter now", "group", g.Name, "key", r.Key.String(), "type", r.Type,
		"reason", string(reason), "step", step, "attempt", l.Attempt, "err", cause)
	d := r.Delivery
	d.Attempt, d.Generation, d.Run, d.DeadCopy, d.Reason = l.Attempt, l.Generation, l.Run, true, string(reason)
	g.settled(sub.Bury(ctx, r, d), r, "move to dead letters")
}

// later puts a delivery off without counting an attempt.
func (g *group) later(ctx context.Context, sub queue.Subscription, r queue.Received, until time.Time) {
	d := r.Delivery
	d.Due = until
	g.settled(sub.Retry(ctx, r, d), r, "delay")
}

// giveBack ends an attempt that the shutdown broke off.
func (g *group) giveBack(ctx context.Context, sub queue.Subscription, r queue.Received, l inbox.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := g.c.Inbox.Release(ctx, l); err != nil {
		g.c.Logger.Warn("event could not be given back; its lease will end", "group", g.Name, "key", r.Key.String(), "err", err)
	}
	g.settled(sub.Requeue(ctx, r), r, "requeue")
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

// settled notes a delivery that could not be settled: the broker has lost the
// subscription, or will, and delivers it again; the inbox knows it then.
func (g *group) settled(err error, r queue.Received, what string) {
	if err != nil {
		g.c.Logger.Debug("delivery not settled; it will come again", "group", g.Name, "key", r.Key.String(), "what", what, "err", err)
	}
}

package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/batch"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

// group runs the deliveries of one consumer group.
type group struct {
	Group
	c *Consumer

	begins *batch.Batcher[wire.Delivery, inbox.Verdict]
	// works carries out the steps in the database, marks the records of the
	// others: a slow step must not hold up what is not slow.
	works, marks *committer

	// routes are the handlers within their middleware.
	routes []Route
}

func newGroup(g Group, c *Consumer) *group {
	made := &group{Group: g, c: c}
	for _, r := range g.Handlers {
		for _, use := range slices.Backward(g.Use) {
			r.handler = use(r.handler)
		}
		made.routes = append(made.routes, r)
	}
	return made
}

const (
	// leaseLostDelay is how long a delivery rests whose event went to another consumer.
	leaseLostDelay = time.Second
	// crashesAlone is the number of crashes from which on an event runs alone.
	crashesAlone = 2
	// lateWork is how long records may still be written once everything in work
	// was broken off.
	lateWork = 5 * time.Second
	// beginTimeout bounds the look at the inbox.
	beginTimeout = 30 * time.Second
)

// open prepares a group for its deliveries; hard ends what is in work, late the
// records of it.
func (g *group) open(hard, late context.Context) {
	longest := defaultStepTimeout
	for _, s := range g.Steps {
		longest = max(longest, s.timeout())
	}
	for _, r := range g.routes {
		longest = max(longest, r.timeout)
	}
	// Half of the connections are left to everything else.
	lanes := g.Concurrency
	if n := g.c.Inbox.DB().Stats().MaxOpenConnections; n > 0 {
		lanes = min(lanes, max(1, n/2))
	}
	g.works = newCommitter(hard, g.c.Inbox, lanes, longest+time.Second)
	g.marks = newCommitter(late, g.c.Inbox, min(lanes, 2), beginTimeout)
	g.begins = batch.New(batch.Options{MaxItems: sharedMost, Timeout: beginTimeout}, func(ctx context.Context, ds []wire.Delivery) ([]inbox.Verdict, error) {
		return g.c.Inbox.Begin(ctx, g.Name, ds, g.Retry.MaxCrashes)
	})
}

func (g *group) close() { g.begins.Close() }

// width is how many events are in work at the same time. Steps within the
// database share transactions: the more are ready, the better, and Concurrency
// bounds the transactions. Whatever else runs is bounded itself.
func (g *group) width() int {
	if len(g.routes) > 0 {
		return g.Concurrency
	}
	for _, s := range g.Steps {
		if s.Do != nil {
			return g.Concurrency
		}
	}
	return g.Prefetch
}

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
	g.c.alone.RLock()
	alone := g.begun(ctx, sub, r, false)
	g.c.alone.RUnlock()
	if alone {
		// If its process dies again, nothing dies with it.
		g.c.alone.Lock()
		defer g.c.alone.Unlock()
		g.begun(ctx, sub, r, true)
	}
}

// begun asks the inbox about a delivery and acts on the verdict. It returns
// true for an event that has to run alone, unless it does.
func (g *group) begun(ctx context.Context, sub queue.Subscription, r queue.Received, alone bool) bool {
	var v inbox.Verdict
	err := g.c.insist(ctx, "inbox record", func() (err error) {
		v, err = g.begins.Do(ctx, r.Delivery)
		return err
	})
	if err != nil {
		g.settled(sub.Requeue(context.WithoutCancel(ctx), r), r, "requeue")
		return false
	}
	switch v.Decision {
	case inbox.Settle:
		g.c.Metrics.Attempts.WithLabelValues(g.Name, "duplicate").Inc()
		g.ack(ctx, sub, r)
	case inbox.Wait:
		g.later(ctx, sub, r, v.Until)
	case inbox.Expire:
		g.c.park(ctx, sub, r, inbox.Letter{
			Group: g.Name, Event: r.Event, Reason: inbox.Expired, Generation: r.Generation,
			Error: "received longer ago than the inbox remembers, and no record of it is left",
		})
	case inbox.Crash:
		g.bury(ctx, sub, r, v.Lease, inbox.Letter{
			Reason: inbox.Crashed, Error: fmt.Sprintf("its process died %d times while it ran", v.Crashes),
		})
	case inbox.Run:
		if v.Crashes < crashesAlone || alone {
			g.attempt(ctx, sub, r, v)
			return false
		}
		// Not running while it waits for its turn: others of its kind, one of
		// which kills the process, would be counted with it.
		err := g.c.insist(ctx, "inbox record", func() error { return g.c.Inbox.Release(ctx, v.Lease, g.c.Now()) })
		if err == nil {
			return true
		}
		g.notRecorded(ctx, sub, r, err)
	}
	return false
}

// ack settles a delivery that needs nothing more.
func (g *group) ack(ctx context.Context, sub queue.Subscription, r queue.Received) {
	g.settled(sub.Ack(ctx, r), r, "ack")
}

// later puts a delivery off without counting an attempt.
func (g *group) later(ctx context.Context, sub queue.Subscription, r queue.Received, until time.Time) {
	d := r.Delivery
	d.Due = until
	g.settled(sub.Retry(ctx, r, d), r, "delay")
}

// settled notes a delivery that could not be settled: the broker has lost the
// subscription, or will, and delivers it again; the inbox knows it then.
func (g *group) settled(err error, r queue.Received, what string) {
	if err != nil {
		g.c.Logger.Debug("delivery not settled; it will come again", "group", g.Name, "key", r.Key.String(), "what", what, "err", err)
	}
}

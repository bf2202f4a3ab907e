package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

const (
	// unmatchedGrace is how long a group's delivery that none of its patterns
	// matches waits for a newer instance that matches it.
	unmatchedGrace = 10 * time.Minute
	unmatchedPause = 30 * time.Second
	// sweepEvery is how often rows that nobody wanted are offered again.
	sweepEvery = time.Minute
	sweepBatch = 200
	// dropUnmatched is the Event.Unmatched that lets an unwanted event go.
	dropUnmatched = "drop"
)

// matches says whether a group wants an event. Source "-", a message that
// something else published straight to the queue, is always wanted.
func matches(g Group, e hookonce.Event) bool {
	return e.Key.Source == "-" || g.Wants(e)
}

// unmatched keeps what this group's patterns no longer match, or do not match yet.
func (g *group) unmatched(ctx context.Context, sub queue.Subscription, r queue.Received) {
	now := g.c.Now()
	switch {
	case r.Unmatched == dropUnmatched:
		g.c.Metrics.Attempts.WithLabelValues(g.Name, "dropped").Inc()
		g.settled(sub.Ack(ctx, r), r, "ack")
	case r.UnmatchedSince.IsZero() || now.Sub(r.UnmatchedSince) < unmatchedGrace:
		d := r.Delivery
		if d.UnmatchedSince.IsZero() {
			d.UnmatchedSince = now
		}
		d.Due = now.Add(unmatchedPause)
		g.settled(sub.Retry(ctx, r, d), r, "delay")
	default:
		g.c.park(ctx, sub, r, inbox.Letter{
			Group: g.Name, Event: r.Event, Reason: inbox.Unrouted, Generation: r.Generation,
			Error: fmt.Sprintf("no pattern of the group matches %s", r.Topic()),
		})
	}
}

// park makes a delivery a dead letter that was never begun, and settles it.
func (c *Consumer) park(ctx context.Context, sub queue.Subscription, r queue.Received, l inbox.Letter) {
	l.DeadAt = c.Now()
	parked := false
	err := c.insist(ctx, "dead letter record", func() (err error) {
		parked, err = c.Inbox.Park(ctx, l)
		return err
	})
	if err == nil {
		if parked {
			c.Metrics.Dead.WithLabelValues(l.Group, string(l.Reason)).Inc()
			c.Logger.Error("event is a dead letter now", "group", l.Group, "key", l.Event.Key.String(), "type", l.Event.Type,
				"reason", string(l.Reason), "err", l.Error)
		}
		if parked && l.Group != queue.Unrouted {
			d := r.Delivery
			d.DeadCopy, d.Reason = true, string(l.Reason)
			err = sub.Bury(ctx, r, d)
		} else {
			err = sub.Ack(ctx, r)
		}
	}
	if err != nil {
		c.Logger.Debug("delivery not settled; it will come again", "group", l.Group, "key", l.Event.Key.String(), "err", err)
	}
}

// unrouted empties the queue of events that no group wanted when they were
// published, and of items that a receiver parked.
type unrouted struct{ c *Consumer }

func (u *unrouted) handle(ctx context.Context, sub queue.Subscription, r queue.Received) {
	letter := inbox.Letter{Group: queue.Unrouted, Event: r.Event, Generation: r.Generation}
	switch {
	case r.Invalid != nil:
		letter.Reason, letter.Error = inbox.Invalid, r.Invalid.Error()
	case r.Parked != "":
		letter.Reason, letter.Error = inbox.Invalid, r.Parked
	case !r.Rerouted && u.wanted(r.Event):
		// The queue exists now, or this consumer has declared it: once more.
		d := r.Delivery
		d.Rerouted = true
		if err := u.c.Queue.Send(ctx, "", d); err != nil {
			u.c.Logger.Warn("event could not be routed; it stays unrouted for now", "key", r.Key.String(), "err", err)
			_ = sub.Requeue(ctx, r)
			pause(ctx, time.Second)
			return
		}
		_ = sub.Ack(ctx, r)
		return
	case r.Unmatched == dropUnmatched:
		u.c.Metrics.Attempts.WithLabelValues(queue.Unrouted, "dropped").Inc()
		_ = sub.Ack(ctx, r)
		return
	default:
		letter.Reason, letter.Error = inbox.Unrouted, fmt.Sprintf("no consumer group matches %s", r.Topic())
	}
	u.c.park(ctx, sub, r, letter)
}

// wanted says whether one of this consumer's groups matches the event.
func (u *unrouted) wanted(e hookonce.Event) bool {
	for _, g := range u.c.Groups {
		if e.Key.Source != "-" && matches(g, e) {
			return true
		}
	}
	return false
}

// sweepRows sends unrouted rows of this inbox on their way when a group has
// come that wants them, at start and every minute.
func (u *unrouted) sweepRows(ctx context.Context) {
	for ctx.Err() == nil {
		if err := u.sweep(ctx); err != nil && ctx.Err() == nil {
			u.c.Logger.Warn("unrouted rows could not be looked through; will try again", "err", err)
		}
		pause(ctx, sweepEvery)
	}
}

func (u *unrouted) sweep(ctx context.Context) error {
	filter := inbox.Filter{Group: queue.Unrouted, Reason: inbox.Unrouted}
	var after inbox.Cursor
	for {
		letters, next, err := u.c.Inbox.Letters(ctx, filter, after, sweepBatch)
		if err != nil || len(letters) == 0 {
			return err
		}
		for _, l := range letters {
			if !u.wanted(l.Event) {
				continue
			}
			if err := u.c.Queue.Send(ctx, "", wire.Delivery{Event: l.Event, Rerouted: true}); err != nil {
				return err
			}
			if _, err := u.c.Inbox.MarkReplayed(ctx, inbox.Replay{Group: queue.Unrouted, Key: l.Event.Key, Generation: l.Generation + 1, Run: l.Run}); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		after = next
	}
}

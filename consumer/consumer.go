package consumer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
)

// Consumer runs groups. Make it with [New]; it runs once.
type Consumer struct {
	Config
	leases  *leases
	pauses  *pauses
	groups  []*group
	streams []*stream
	// alone is held shared by ordinary deliveries and exclusively by one whose
	// process has died twice while it ran.
	alone sync.RWMutex
}

// New checks the configuration and fills in its defaults; it starts nothing.
func New(cfg Config) (*Consumer, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Consumer{Config: cfg, leases: newLeases(cfg.Inbox, cfg.Lease, cfg.Logger), pauses: newPauses(cfg.Inbox, cfg.Logger)}
	for _, g := range cfg.Groups {
		r := newGroup(g, c)
		c.groups = append(c.groups, r)
		c.streams = append(c.streams, &stream{c: c, group: g.Name, width: r.width(), fetch: g.Prefetch, handle: r.handle})
	}
	u := &unrouted{c: c}
	c.streams = append(c.streams, &stream{c: c, group: queue.Unrouted, width: 4, fetch: 64, handle: u.handle})
	return c, nil
}

// Run consumes until ctx ends, then drains: nothing new is taken, and what is
// in work may go on for DrainTimeout. It returns an error only when something
// had to be broken off; what was broken off is given back and runs again.
func (c *Consumer) Run(ctx context.Context) error {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() {
		pause(hard, c.DrainTimeout)
		cancel(errDrained)
	})
	defer stop()

	late, end := c.lateContext(hard)
	defer end()
	for _, g := range c.groups {
		g.open(hard, late)
		defer g.close()
	}
	var work, upkeep sync.WaitGroup
	upkeep.Go(func() { c.leases.run(hard) })
	upkeep.Go(func() { c.pauses.run(ctx) })
	upkeep.Go(func() { c.maintain(ctx) })
	upkeep.Go(func() { (&unrouted{c: c}).sweepRows(ctx) })
	if copies, ok := c.Queue.(queue.DeadCopies); ok {
		for _, g := range c.groups {
			upkeep.Go(func() { (&sweeper{c: c, g: g, copies: copies, token: hookonce.NewToken()}).run(ctx) })
		}
	}
	for _, s := range c.streams {
		work.Go(func() { s.run(ctx, hard) })
	}
	work.Wait()
	err := context.Cause(hard)
	cancel(nil)
	upkeep.Wait()
	if errors.Is(err, errDrained) {
		return fmt.Errorf("consumer: %w after %s", err, c.DrainTimeout)
	}
	return nil
}

// lateContext ends a little after ctx.
func (c *Consumer) lateContext(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		pause(late, lateWork)
		cancel()
	})
	return late, func() { stop(); cancel() }
}

var errDrained = errors.New("steps in work were broken off")

// Up says, by group, whether its events are being consumed now. A group that an
// operator has paused does as it is told, and counts as up.
func (c *Consumer) Up() map[string]bool {
	up := make(map[string]bool, len(c.streams))
	for _, s := range c.streams {
		up[s.group] = s.up.Load() || c.pauses.is(s.group)
	}
	return up
}

// Taking says whether a group's events are being taken this moment; not while it
// is paused.
func (c *Consumer) Taking(group string) bool {
	for _, s := range c.streams {
		if s.group == group {
			return s.up.Load()
		}
	}
	return false
}

const (
	maintainEvery = 15 * time.Second
	expireBatch   = 500
)

// maintain removes records that are past their time and measures the dead letters.
func (c *Consumer) maintain(ctx context.Context) {
	for ctx.Err() == nil {
		for {
			n, err := c.Inbox.Expire(ctx, expireBatch)
			if err != nil && ctx.Err() == nil {
				c.Logger.Warn("expired records could not be removed; will try again", "err", err)
			}
			if err != nil || n < expireBatch {
				break
			}
		}
		if dead, err := c.Inbox.CountDead(ctx); err == nil {
			c.Metrics.DeadEvents.WithLabelValues(queue.Unrouted).Set(float64(dead[queue.Unrouted]))
			for _, g := range c.groups {
				c.Metrics.DeadEvents.WithLabelValues(g.Name).Set(float64(dead[g.Name]))
			}
		}
		pause(ctx, maintainEvery)
	}
}

// insist repeats fn, which must reach the database, until it succeeds, says
// that it never will, or ctx ends. The delivery stays unsettled meanwhile, so
// a database that is away slows the group down and loses nothing.
func (c *Consumer) insist(ctx context.Context, what string, fn func() error) error {
	delay := resubscribeFirst
	for {
		err := fn()
		if err == nil || final(err) || ctx.Err() != nil {
			return err
		}
		c.Logger.Warn(what+" failed; will try again", "err", err)
		pause(ctx, delay/2+rand.N(delay/2))
		delay = min(delay*2, resubscribeMax)
	}
}

package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/telemetry"
	"github.com/hookonce/hookonce/internal/topic"
)

// Config is what a Consumer is made of.
type Config struct {
	// Groups are run side by side; at least one, names are unique.
	Groups []Group
	// Queue delivers the groups' events.
	Queue queue.Queue
	// Inbox is the record of what was done.
	Inbox *inbox.Inbox
	// Lease is how long an event stays this process's without a sign of life;
	// it is renewed at a third. 15s; the inbox must have the same.
	Lease time.Duration
	// DrainTimeout is how long steps in work may go on after Run's context has
	// ended. 25s.
	DrainTimeout time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics may be nil.
	Metrics *telemetry.Metrics
	// Now is the clock; time.Now.
	Now func() time.Time
}

// Group is one consumer group.
type Group struct {
	// Name is the queue's name without its prefix.
	Name string
	// Match are topic patterns over <source>.<type>: "*" is one word, "#" any number.
	Match []topic.Pattern
	// Concurrency is how many events run at the same time. 16.
	Concurrency int
	// Prefetch is how many are held ready, those that run included. 64, at
	// least Concurrency.
	Prefetch int
	// Retry is how failures are repeated.
	Retry RetryPolicy
	// Steps are carried out in order; at least one, names are unique.
	Steps []Step
}

// RetryPolicy is how failures are repeated.
type RetryPolicy struct {
	// MaxAttempts is how many attempts an event gets in all before it becomes a
	// dead letter; each replay starts anew. 12.
	MaxAttempts int
	// First is the upper bound of the first delay, doubled for each further
	// one. 1s.
	First time.Duration
	// Max is the upper bound of every delay. 10m.
	Max time.Duration
	// MaxCrashes is how many times an event's process may die before the event
	// becomes a dead letter. 5.
	MaxCrashes int
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, 15*time.Second)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 25*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = telemetry.NewMetrics(nil)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	groups := make([]Group, len(c.Groups))
	for i, g := range c.Groups {
		g.Concurrency = cmp.Or(g.Concurrency, 16)
		g.Prefetch = max(cmp.Or(g.Prefetch, 64), g.Concurrency)
		g.Retry = g.Retry.withDefaults()
		groups[i] = g
	}
	c.Groups = groups
	return c
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	p.MaxAttempts = cmp.Or(p.MaxAttempts, 12)
	p.First = cmp.Or(p.First, time.Second)
	p.Max = cmp.Or(p.Max, 10*time.Minute)
	p.MaxCrashes = cmp.Or(p.MaxCrashes, 5)
	return p
}

func (c Config) validate() error {
	var errs []error
	if c.Queue == nil || c.Inbox == nil {
		errs = append(errs, errors.New("consumer: Queue and Inbox are needed"))
	}
	if len(c.Groups) == 0 {
		errs = append(errs, errors.New("consumer: no group to run"))
	}
	names := map[string]bool{}
	for _, g := range c.Groups {
		if g.Name == "" || g.Name == queue.Unrouted || names[g.Name] {
			errs = append(errs, fmt.Errorf("consumer: group name %q is empty, reserved or used twice", g.Name))
		}
		names[g.Name] = true
		errs = append(errs, g.validate())
	}
	return errors.Join(errs...)
}

func (g Group) validate() error {
	if len(g.Match) == 0 || len(g.Steps) == 0 {
		return fmt.Errorf("consumer: group %s needs at least one pattern and one step", g.Name)
	}
	var errs []error
	names := map[string]bool{}
	for _, s := range g.Steps {
		if s.Name == "" || names[s.Name] {
			errs = append(errs, fmt.Errorf("consumer: group %s: step name %q is empty or used twice", g.Name, s.Name))
		}
		names[s.Name] = true
		kinds := 0
		for _, has := range []bool{s.Tx != nil, s.Statements != nil, s.Do != nil} {
			if has {
				kinds++
			}
		}
		if kinds != 1 {
			errs = append(errs, fmt.Errorf("consumer: group %s: step %s needs exactly one of Tx, Statements and Do", g.Name, s.Name))
		}
		if s.OnUnknown != "" && s.OnUnknown != Rerun && s.OnUnknown != Park {
			errs = append(errs, fmt.Errorf("consumer: group %s: step %s: OnUnknown is %q; it is %q or %q", g.Name, s.Name, s.OnUnknown, Rerun, Park))
		}
	}
	return errors.Join(errs...)
}

package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/telemetry"
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
	// Match says which events the group wants; those of Handlers are added.
	Match []Pattern
	// Concurrency is how many handlers and outside effects run at the same time,
	// and, where steps share transactions, how many of these. 16.
	Concurrency int
	// Prefetch is how many are held ready, those that run included. 64, at
	// least Concurrency.
	Prefetch int
	// Retry is how failures are repeated.
	Retry RetryPolicy
	// Steps are carried out in order; names are unique. A group has either Steps
	// or Handlers.
	Steps []Step
	// Handlers take the events of their patterns: the first one that matches.
	Handlers []Route
	// Use wraps every handler, the first one outermost.
	Use []Middleware
}

// Patterns are the patterns of the events that the group wants, those of its
// handlers included.
func (g Group) Patterns() []string {
	var texts []string
	for _, p := range g.Match {
		texts = append(texts, p.String())
	}
	for _, r := range g.Handlers {
		if !slices.Contains(texts, r.pattern) {
			texts = append(texts, r.pattern)
		}
	}
	return texts
}

// Wants says whether one of the group's patterns matches an event.
func (g Group) Wants(e hookonce.Event) bool {
	name := e.Topic()
	return slices.ContainsFunc(g.Match, func(p Pattern) bool { return p.Match(name) }) ||
		slices.ContainsFunc(g.Handlers, func(r Route) bool { return r.err == nil && r.parsed.Match(name) })
}

// Router names the groups that want an event; an embedded queue asks it where
// RabbitMQ has bindings.
func Router(groups []Group) func(hookonce.Event) []string {
	return func(e hookonce.Event) []string {
		var names []string
		for _, g := range groups {
			if g.Wants(e) {
				names = append(names, g.Name)
			}
		}
		return names
	}
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
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("consumer: group %s: "+format, append([]any{g.Name}, args...)...))
	}
	if (len(g.Steps) > 0) == (len(g.Handlers) > 0) {
		fail("it needs steps or handlers, and not both")
	}
	if len(g.Match) == 0 && len(g.Handlers) == 0 {
		fail("it needs at least one pattern")
	}
	names := map[string]bool{}
	for _, s := range g.Steps {
		if err := s.validate(); err != nil {
			fail("%w", err)
		}
		if names[s.Name] {
			fail("step name %q is used twice", s.Name)
		}
		names[s.Name] = true
	}
	for _, r := range g.Handlers {
		if r.err != nil {
			fail("handler: %w", r.err)
		}
		if r.handler == nil {
			fail("pattern %q has no handler", r.pattern)
		}
	}
	return errors.Join(errs...)
}

package consumer

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/topic"
)

// Pattern is a topic pattern over <source>.<type>: "*" is one word, "#" any
// number of them. It is made by [ParsePattern].
type Pattern = topic.Pattern

// ParsePattern reads a pattern.
func ParsePattern(text string) (Pattern, error) { return topic.Parse(text) }

// Handler does what is to be done about an event. Its error decides what comes
// next, as a step's does: nil means done.
//
// What a Handler does outside of [Delivery.Tx], [Delivery.Step] and
// [Delivery.StepTx] is done again by each retry.
type Handler func(ctx context.Context, d *Delivery) error

// Middleware wraps a handler.
type Middleware func(Handler) Handler

// Route gives the events that match a pattern to a handler.
type Route struct {
	pattern string
	parsed  Pattern
	err     error // of the pattern
	handler Handler
	timeout time.Duration
}

// HandleFunc makes a route of a handler that reads the event itself.
func HandleFunc(pattern string, h Handler) Route {
	p, err := topic.Parse(pattern)
	return Route{pattern: pattern, parsed: p, err: err, handler: h}
}

// Handle makes a route of a function that takes the event's body as a T, read
// from JSON. A body that is no T is a dead letter at once. The delivery is
// [FromContext].
func Handle[T any](pattern string, fn func(ctx context.Context, e hookonce.Event, v T) error) Route {
	return HandleFunc(pattern, func(ctx context.Context, d *Delivery) error {
		var v T
		if err := json.Unmarshal(d.Event.Body, &v); err != nil {
			return Permanent(fmt.Errorf("the body is no %T: %w", v, err))
		}
		return fn(ctx, d.Event, v)
	})
}

// Timeout bounds one attempt of the route's handler; 60s without it.
func (r Route) Timeout(d time.Duration) Route {
	r.timeout = d
	return r
}

var (
	// ErrStepInTx says that a step was begun inside an open transaction of the
	// same delivery: its record could be committed while the transaction is not.
	ErrStepInTx = errors.New("a step cannot begin inside an open Tx or StepTx")
	// ErrDone says that the event is done: its Tx has committed.
	ErrDone = errors.New("the event is done; nothing can follow its Tx")
)

// Delivery is one attempt at an event, as a handler sees it. It is not for
// several goroutines.
type Delivery struct {
	// Event is what the receiver accepted.
	Event hookonce.Event
	// Group is the consumer group.
	Group string
	// Attempt is this attempt's number, from 1, of at most MaxAttempts.
	Attempt, MaxAttempts int
	// RetryIn is the delay before the next attempt if this one fails; 0 when it
	// is the last.
	RetryIn time.Duration

	a    *attempt
	inTx atomic.Bool
	done bool
	// end is a result that is not the handler's to change: the lease is lost,
	// another event comes first, or a person has to decide.
	end error
	// failed is the last step that failed: the handler's own error may not wrap
	// its error.
	failed *failure
}

type deliveryKey struct{}

// FromContext is the delivery that a handler's context belongs to; nil in any
// other.
func FromContext(ctx context.Context) *Delivery {
	d, _ := ctx.Value(deliveryKey{}).(*Delivery)
	return d
}

// Tx runs fn in a transaction in the inbox's database that also records the
// event as done: exactly once, whatever crashes. It is for handlers without
// steps: after it nothing of the handler is repeated, not even for its error.
//
// Deliveries that are ready at the same moment share the transaction. fn may be
// called again when another one's failure has rolled it back; it must neither
// commit nor roll back, and do nothing that the rollback would not undo.
func (d *Delivery) Tx(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return d.tx(ctx, fn, false)
}

// OwnTx is Tx with a transaction of its own, for work that takes long.
func (d *Delivery) OwnTx(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return d.tx(ctx, fn, true)
}

func (d *Delivery) tx(ctx context.Context, fn func(ctx context.Context, tx *sql.Tx) error, own bool) error {
	if err := d.may(); err != nil {
		return err
	}
	w := inbox.Work{Lease: d.a.v.Lease, Last: true, Tx: func(tx *sql.Tx) error { return d.within(ctx, tx, fn) }}
	var busy time.Duration
	res, err := d.a.carryOut(timed(w, &busy), own, &busy)
	d.a.g.c.Metrics.Effect.WithLabelValues(d.Group, "tx").Observe(busy.Seconds())
	if err == nil {
		err = res.Err
	}
	d.done = err == nil
	return d.ends(err)
}

// within marks the delivery as being in a transaction while fn runs.
func (d *Delivery) within(ctx context.Context, tx *sql.Tx, fn func(ctx context.Context, tx *sql.Tx) error) error {
	d.inTx.Store(true)
	defer d.inTx.Store(false)
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	return call(func() error { return fn(ctx, tx) })
}

// Step runs fn, which has an effect outside the database, as a named step:
// recorded as started before and as done after, and skipped once done. See
// [Step].Do for what its errors mean, and [Delivery.Run] for more choices.
func (d *Delivery) Step(ctx context.Context, name string, fn func(ctx context.Context, t Try) error) error {
	return d.Run(ctx, Step{Name: name, Do: fn})
}

// StepTx runs fn as a named step in a transaction that also records it.
func (d *Delivery) StepTx(ctx context.Context, name string, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return d.Run(ctx, Step{Name: name, Tx: func(ctx context.Context, tx *sql.Tx, _ hookonce.Event) error { return fn(ctx, tx) }})
}

// Run runs a step unless it is recorded. Its error is the handler's to return:
// it says which step failed, and whether its effect may have happened.
func (d *Delivery) Run(ctx context.Context, s Step) error {
	if err := d.may(); err != nil {
		return err
	}
	if err := s.validate(); err != nil {
		return Permanent(err)
	}
	if s.recorded(d.a.v.Steps) {
		return nil
	}
	if tx := s.Tx; tx != nil {
		s.Tx = func(ctx context.Context, t *sql.Tx, e hookonce.Event) error {
			return d.within(ctx, t, func(ctx context.Context, t *sql.Tx) error { return tx(ctx, t, e) })
		}
	}
	err := d.a.step(ctx, s, false)
	if err == nil {
		if d.a.v.Steps == nil {
			d.a.v.Steps = map[string]inbox.Step{}
		}
		d.a.v.Steps[s.Name] = inbox.Step{Name: s.Name, State: inbox.StepDone}
	}
	return d.ends(err)
}

// may says whether anything may begin now.
func (d *Delivery) may() error {
	switch {
	case d.inTx.Load():
		return ErrStepInTx
	case d.done:
		return ErrDone
	}
	return d.end
}

// ends remembers what a handler cannot change by dropping the error.
func (d *Delivery) ends(err error) error {
	var wait *waitError
	var f *failure
	if errors.As(err, &wait) || errors.Is(err, inbox.ErrLeaseLost) || errors.As(err, &f) && f.park {
		d.end = err
	}
	if f != nil {
		d.failed = f
	}
	return err
}

// handler runs the group's handler for the event.
func (a *attempt) handler(ctx context.Context) error {
	route, ok := a.g.route(a.r.Event)
	if !ok {
		return Permanent(fmt.Errorf("no handler of the group matches %s", a.r.Topic()))
	}
	timeout := route.timeout
	if timeout <= 0 {
		timeout = defaultStepTimeout
	}
	d := &Delivery{
		Event: a.r.Event, Group: a.g.Name, Attempt: a.v.Lease.Attempt, MaxAttempts: a.g.Retry.MaxAttempts, RetryIn: a.retryIn, a: a,
	}
	timed, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the handler took longer than %s", timeout))
	defer cancel()
	timed = context.WithValue(timed, deliveryKey{}, d)
	err := call(func() error { return route.handler(timed, d) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && timed.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(timed), err)
	}
	switch {
	case d.done:
		if err != nil {
			a.g.c.Logger.Warn("a handler failed behind its Tx; the event is done", "group", a.g.Name, "key", a.r.Key.String(), "err", err)
		}
		return nil
	case d.end != nil:
		return d.end
	case err != nil && d.failed != nil && !errors.As(err, new(*failure)):
		return &failure{step: d.failed.step, state: d.failed.state, err: err}
	case err != nil:
		return err
	}
	return a.finish(ctx)
}

// route finds the first route that matches an event.
func (g *group) route(e hookonce.Event) (Route, bool) {
	name := e.Topic()
	for _, r := range g.routes {
		if r.parsed.Match(name) {
			return r, true
		}
	}
	return Route{}, false
}

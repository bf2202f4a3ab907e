package publisher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/telemetry"
	"github.com/hookonce/hookonce/internal/wire"
)

// What can become of an event. Only no error at all means that it is durably in
// a queue.
var (
	// ErrNacked says that the broker refused the event this time.
	ErrNacked = rabbit.ErrNacked
	// ErrUnroutable says that exchange or queue are missing. An event that no
	// group is bound for is not unroutable: it waits in hookonce.unrouted.
	ErrUnroutable = rabbit.ErrUnroutable
	// ErrUnconfirmed says that nobody knows whether the broker has the event.
	ErrUnconfirmed = rabbit.ErrUnconfirmed
	// ErrSuspect comes with ErrUnconfirmed when the event was in flight on a
	// channel that the broker closed because of one of the events on it.
	// [Publisher.SendAlone] tells whether it was this one.
	ErrSuspect = rabbit.ErrSuspect
	// ErrRefused says that this event, alone, is what the broker does not accept,
	// now and on any further try.
	ErrRefused = rabbit.ErrRefused
	// ErrStarted says that Start was called before.
	ErrStarted = errors.New("publisher: already started")
)

// Config is how to reach the broker and what must be there; every field has a
// default. It is the configuration of the broker connection itself.
type Config = rabbit.Config

// Group is one consumer group in a [Config].
type Group = rabbit.GroupTopology

// Topology modes of a [Config].
const (
	Declare = rabbit.Declare
	Verify  = rabbit.Verify
	Assume  = rabbit.Assume
)

// closeTimeout bounds what Run waits for confirms at its end.
const closeTimeout = 10 * time.Second

// Publisher publishes events. Its methods may be called from several goroutines.
type Publisher struct {
	broker  *rabbit.Publisher
	metrics *telemetry.Metrics

	mu     sync.Mutex
	cancel context.CancelFunc // nil before Start
	ended  chan struct{}
}

// New makes a publisher; it connects once it is started.
func New(cfg Config) *Publisher {
	if cfg.Metrics == nil {
		cfg.Metrics = telemetry.NewMetrics(nil)
	}
	return &Publisher{broker: rabbit.NewPublisher(cfg), metrics: cfg.Metrics, ended: make(chan struct{})}
}

// Start begins to connect, and keeps connecting until Close; the values of ctx
// are used, its end is not. It does not wait for the connection: events sent
// before it stands wait. The only error is [ErrStarted].
func (p *Publisher) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		return ErrStarted
	}
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		defer close(p.ended)
		_ = p.broker.Run(ctx) // never fails
	}()
	return nil
}

// Close waits until every event in flight has its result, or ctx ends, and then
// disconnects. The error says how many events have no result but ErrUnconfirmed.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	cancel := p.cancel
	p.mu.Unlock()
	if cancel == nil {
		return nil
	}
	err := p.broker.Drain(ctx)
	cancel()
	<-p.ended
	if err != nil {
		return fmt.Errorf("close the publisher: %w", err)
	}
	return nil
}

// Run is Start, and Close with 10 seconds' time once ctx has ended.
func (p *Publisher) Run(ctx context.Context) error {
	if err := p.Start(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return p.Close(ctx)
}

// Connected reports whether the connection to the broker stands.
func (p *Publisher) Connected() bool { return p.broker.Connected() }

// Blocked reports whether the broker takes no messages at the moment: it is
// short of memory or disk space.
func (p *Publisher) Blocked() bool { return p.broker.Blocked() }

// Broker is the broker publisher underneath, for those who move messages too.
func (p *Publisher) Broker() *rabbit.Publisher { return p.broker }

// Publish publishes an event and waits for the result: nil once the broker has
// confirmed it in a durable queue, else one of this package's errors. When ctx
// ends first the result is ErrUnconfirmed.
func (p *Publisher) Publish(ctx context.Context, e hookonce.Event) error {
	exchange, key := rabbit.Route(e)
	err := p.broker.Publish(ctx, exchange, key, encode(e))
	p.count(err)
	return err
}

// Send publishes an event without waiting. It blocks while there is no
// connection, the broker has blocked us or the window is full, until ctx ends.
// done is called exactly once, by another goroutine, and must not block; its
// error is as that of Publish. e's body must not be changed before.
func (p *Publisher) Send(ctx context.Context, e hookonce.Event, done func(error)) {
	exchange, key := rabbit.Route(e)
	p.broker.Send(ctx, exchange, key, encode(e), func(err error) {
		p.count(err)
		done(err)
	})
}

// SendAlone publishes an event on a channel of its own and waits for the
// result; ErrRefused says that the broker closed that channel because of it.
func (p *Publisher) SendAlone(ctx context.Context, e hookonce.Event) error {
	exchange, key := rabbit.Route(e)
	err := p.broker.SendAlone(ctx, exchange, key, encode(e))
	p.count(err)
	return err
}

func encode(e hookonce.Event) wire.Message { return wire.Encode(wire.Delivery{Event: e}) }

func (p *Publisher) count(err error) {
	outcome := "unconfirmed"
	switch {
	case err == nil:
		outcome = "confirmed"
	case errors.Is(err, ErrNacked):
		outcome = "nacked"
	case errors.Is(err, ErrUnroutable):
		outcome = "unroutable"
	case errors.Is(err, ErrRefused):
		outcome = "refused"
	}
	p.metrics.Published.WithLabelValues(outcome).Inc()
}

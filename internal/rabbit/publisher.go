package rabbit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/wire"
)

// redeclareEvery bounds how often missing queues make us declare them anew.
const redeclareEvery = 5 * time.Second

// Publisher publishes messages, persistent and mandatory, and tells what
// became of each. It works while [Publisher.Run] does; what is sent before
// waits for it.
type Publisher struct {
	cfg      Config
	link     *link
	requests chan *request
	stopped  chan struct{}
	turn     sync.Mutex // one connection of this process declares at a time

	mu       sync.Mutex
	pending  int           // messages taken and not yet told about
	idle     chan struct{} // closed while pending is 0
	over     bool          // Run has ended
	declared time.Time     // last declaration because of a missing queue

	// inFlight are the goroutines that wait for a confirm or give bad news.
	inFlight sync.WaitGroup
}

// request is one message on its way.
type request struct {
	exchange, key string
	m             wire.Message
	done          func(error)
}

// NewPublisher makes a publisher; it connects when Run is called.
func NewPublisher(cfg Config) *Publisher {
	p := &Publisher{
		cfg:      cfg.withDefaults(),
		requests: make(chan *request),
		stopped:  make(chan struct{}),
		idle:     make(chan struct{}),
	}
	close(p.idle)
	p.link = newLink(p.cfg, "publishing", &p.turn, p.serve)
	return p
}

// Run connects and publishes until ctx is done; call it once. When it returns,
// every message sent has had its result: those that were in flight have
// ErrUnconfirmed, unless [Publisher.Drain] was called first. The result is
// always nil: a broker that is away is reported through Config.OnState.
func (p *Publisher) Run(ctx context.Context) error {
	p.link.run(ctx)
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	close(p.stopped)
	p.inFlight.Wait()
	return nil
}

// Drain waits until nothing is in flight, or ctx ends. It does not keep anybody
// from sending more.
func (p *Publisher) Drain(ctx context.Context) error {
	for {
		p.mu.Lock()
		pending, idle := p.pending, p.idle
		p.mu.Unlock()
		if pending == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return fmt.Errorf("%d messages are still unconfirmed: %w", pending, ctx.Err())
		}
	}
}

// Connected reports whether the publishing connection stands.
func (p *Publisher) Connected() bool { return p.link.connected() }

// Blocked reports whether the broker takes no messages at the moment: it is
// short of memory or disk space.
func (p *Publisher) Blocked() bool {
	p.link.mu.Lock()
	s := p.link.current
	p.link.mu.Unlock()
	if s == nil {
		return false
	}
	blocked, _ := s.flow.state()
	return blocked
}

// Send publishes a message; m must not be changed before its result is known.
// It blocks while there is no connection, the broker has blocked us or the
// window is full, until ctx ends. done is called exactly once, by another
// goroutine, and must not block: with nil when the message is durably in a
// queue, else with ErrNacked, ErrUnroutable, ErrRefused or ErrUnconfirmed
// (perhaps with ErrSuspect). After Run has ended done is called by Send itself.
func (p *Publisher) Send(ctx context.Context, exchange, key string, m wire.Message, done func(error)) {
	if err := checkMessage(exchange, key, m); err != nil {
		p.refuse(done, err)
		return
	}
	r := &request{exchange: exchange, key: key, m: m, done: done}
	select {
	case p.requests <- r:
	case <-ctx.Done():
		p.refuse(done, fmt.Errorf("%w: it could not be sent: %w", ErrUnconfirmed, ctx.Err()))
	case <-p.stopped:
		p.refuse(done, fmt.Errorf("%w: %w", ErrUnconfirmed, ErrClosed))
	}
}

// Publish is Send that waits for the result. When ctx ends first, the result is
// ErrUnconfirmed.
func (p *Publisher) Publish(ctx context.Context, exchange, key string, m wire.Message) error {
	result := make(chan error, 1)
	p.Send(ctx, exchange, key, m, func(err error) { result <- err })
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnconfirmed, ctx.Err())
	}
}

// SendAlone publishes a message on a channel of its own and waits for the
// result. ErrRefused says that the broker closed that channel because of it.
func (p *Publisher) SendAlone(ctx context.Context, exchange, key string, m wire.Message) error {
	if err := checkMessage(exchange, key, m); err != nil {
		return err
	}
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnconfirmed, ErrClosed)
	}
	p.inFlight.Add(1)
	p.mu.Unlock()
	defer p.inFlight.Done()
	s, err := p.link.session(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	l, err := p.openLane(s, 1)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnconfirmed, err)
	}
	defer func() { _ = s.call(l.ch.Close) }()
	result := make(chan error, 1)
	l.slots <- struct{}{}
	l.publish(&request{exchange: exchange, key: key, m: m, done: func(err error) { result <- err }})
	select {
	case err = <-result:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnconfirmed, ctx.Err())
	}
	if errors.Is(err, ErrSuspect) {
		return fmt.Errorf("%w: %w", ErrRefused, l.closeCause())
	}
	return err
}

// serve publishes over one connection.
func (p *Publisher) serve(ctx context.Context, s *session) {
	if m := p.cfg.Metrics; m != nil {
		m.BrokerUp.Set(1)
		defer m.BrokerUp.Set(0)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var lanes sync.WaitGroup
	for range p.cfg.Channels {
		lanes.Go(func() { p.keepLane(ctx, s) })
	}
	select {
	case <-s.done:
	case <-ctx.Done():
	}
	cancel()
	lanes.Wait()
}

// keepLane publishes over one channel after the other while the session lasts.
func (p *Publisher) keepLane(ctx context.Context, s *session) {
	for failed := 0; ctx.Err() == nil; {
		began := time.Now()
		l, err := p.openLane(s, p.cfg.Window)
		if err == nil {
			err = l.run(ctx)
		}
		select {
		case <-s.done:
			return
		case <-ctx.Done():
			return
		default:
		}
		p.cfg.Logger.Warn("a publishing channel was closed; its messages in flight are unconfirmed", "err", err)
		if time.Since(began) > steady {
			failed = 0
		}
		pause(ctx, backoff(failed))
		failed++
	}
}

// refuse gives a message that was never taken its result.
func (p *Publisher) refuse(done func(error), err error) {
	p.mu.Lock()
	over := p.over
	if !over {
		p.inFlight.Add(1)
	}
	p.mu.Unlock()
	if over {
		done(err)
		return
	}
	go func() {
		defer p.inFlight.Done()
		done(err)
	}()
}

// begin and end count the messages in flight.
func (p *Publisher) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == 0 {
		p.idle = make(chan struct{})
	}
	p.pending++
}

func (p *Publisher) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending--; p.pending == 0 {
		close(p.idle)
	}
}

// redeclare makes missing queues anew, when somebody deleted them under us.
func (p *Publisher) redeclare(s *session) {
	if p.cfg.Topology != Declare {
		return
	}
	p.mu.Lock()
	due := time.Since(p.declared) > redeclareEvery
	if due {
		p.declared = time.Now()
	}
	p.mu.Unlock()
	if !due {
		return
	}
	if err := ensureTopology(s, p.cfg, &p.turn); err != nil {
		p.cfg.Logger.Error("messages find no queue, and declaring the topology failed", "err", err)
		return
	}
	p.cfg.Logger.Warn("messages found no queue; the topology was declared again")
}

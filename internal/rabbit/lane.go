package rabbit

import (
	"context"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// lane is one channel in confirm mode. One goroutine at a time publishes on it.
type lane struct {
	p     *Publisher
	s     *session
	ch    *amqp.Channel
	slots chan struct{} // one for every message in flight

	// broken and closes both hold the channel's close reason: one wakes run, the
	// other is read by whoever needs the reason.
	broken, closes chan *amqp.Error
	returns        chan amqp.Return

	mu       sync.Mutex
	cause    *amqp.Error
	returned map[routed]int
	timedOut int
}

// routed tells messages apart that the broker hands back. Two that are equal in
// all of it go the same way and are the same event: it does not matter which of
// them came back.
type routed struct{ exchange, key, messageID string }

func (p *Publisher) openLane(s *session, window int) (*lane, error) {
	ch, err := s.channel()
	if err != nil {
		return nil, fmt.Errorf("open a channel to publish: %w", err)
	}
	if err := s.call(func() error { return ch.Confirm(false) }); err != nil {
		return nil, fmt.Errorf("turn on publisher confirms: %w", err)
	}
	return &lane{
		p:        p,
		s:        s,
		ch:       ch,
		slots:    make(chan struct{}, window),
		broken:   ch.NotifyClose(make(chan *amqp.Error, 1)),
		closes:   ch.NotifyClose(make(chan *amqp.Error, 1)),
		returns:  ch.NotifyReturn(make(chan amqp.Return, 2*window+1)), // never full: see collect
		returned: map[routed]int{},
	}, nil
}

// run publishes what is asked for until ctx ends or the channel breaks.
func (l *lane) run(ctx context.Context) error {
	for {
		requests := l.p.requests
		blocked, changed := l.s.flow.state()
		if blocked {
			requests = nil // what is not taken cannot hang
		}
		select {
		case l.slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		case <-l.broken:
			return l.brokenBy()
		}
		select {
		case r := <-requests:
			if err := l.publish(r); err != nil {
				return err
			}
			continue
		case <-changed:
		case <-ctx.Done():
			return nil
		case <-l.broken:
			return l.brokenBy()
		}
		<-l.slots
	}
}

// publish sends a message, for which a slot is taken, and sees to its result.
// An error means that the channel is of no use any more.
func (l *lane) publish(r *request) error {
	l.p.begin()
	l.p.inFlight.Add(1)
	dc, err := l.ch.PublishWithDeferredConfirm(r.exchange, r.key, true, false, toPublishing(r.m))
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrUnconfirmed, err)
		go l.finish(r, err)
		return err
	}
	go l.await(r, dc)
	return nil
}

func (l *lane) await(r *request, dc *amqp.DeferredConfirmation) {
	t := time.NewTimer(l.p.cfg.ConfirmTimeout)
	defer t.Stop()
	select {
	case <-dc.Done():
		l.finish(r, l.outcome(r, dc))
	case <-t.C:
		l.late()
		l.finish(r, fmt.Errorf("%w within %v", ErrUnconfirmed, l.p.cfg.ConfirmTimeout))
	}
}

func (l *lane) finish(r *request, err error) {
	defer l.p.inFlight.Done()
	<-l.slots
	r.done(err)
	l.p.end()
}

// outcome reads the three states out of the library's two: not acked may mean
// refused, or that the channel died and nobody knows.
func (l *lane) outcome(r *request, dc *amqp.DeferredConfirmation) error {
	if dc.Acked() {
		if l.cameBack(r) {
			l.p.redeclare(l.s)
			return fmt.Errorf("%w %q: exchange %q or the queue is missing", ErrUnroutable, r.key, r.exchange)
		}
		return nil
	}
	if !l.ch.IsClosed() {
		return ErrNacked
	}
	cause := l.closeCause()
	switch {
	case cause == nil:
		return fmt.Errorf("%w: the connection was closed", ErrUnconfirmed)
	case cause.Code == amqp.NotFound && cause.Server:
		l.p.redeclare(l.s)
		return fmt.Errorf("%w: %w", ErrUnroutable, cause)
	case messageFault(cause):
		return fmt.Errorf("%w: %w: %w", ErrUnconfirmed, ErrSuspect, cause)
	}
	return fmt.Errorf("%w: %w", ErrUnconfirmed, cause)
}

// cameBack reports whether the broker handed the message back as unroutable.
// The broker does that before it confirms, and the library's one reader
// delivers in that order, so a return that belongs to a confirmed message is
// either noted or in the channel already.
func (l *lane) cameBack(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.collect()
	id := routed{r.exchange, r.key, r.m.MessageID}
	n := l.returned[id]
	switch {
	case n == 0:
		return false
	case n == 1:
		delete(l.returned, id)
	default:
		l.returned[id] = n - 1
	}
	return true
}

// collect notes the returns that have arrived. Every confirm collects, so that
// no more can wait than messages are in flight.
func (l *lane) collect() {
	for {
		select {
		case ret, ok := <-l.returns:
			if !ok {
				l.returns = nil // a nil channel is never ready
				continue
			}
			l.returned[routed{ret.Exchange, ret.RoutingKey, ret.MessageId}]++
		default:
			return
		}
	}
}

// late counts messages that were given up. Their confirms may still come; a
// channel with too many of them is replaced.
func (l *lane) late() {
	l.mu.Lock()
	l.timedOut++
	full := l.timedOut == cap(l.slots)
	l.mu.Unlock()
	if full {
		_ = l.s.call(l.ch.Close)
	}
}

func (l *lane) closeCause() *amqp.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case e := <-l.closes:
		if e != nil {
			l.cause = e
		}
	default:
	}
	return l.cause
}

func (l *lane) brokenBy() error {
	if e := l.closeCause(); e != nil {
		return e
	}
	return amqp.ErrClosed
}

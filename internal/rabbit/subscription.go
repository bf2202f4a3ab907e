package rabbit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

const (
	// early is how long before its time a message is kept here rather than sent
	// through a bucket once more.
	early = 250 * time.Millisecond
	// maxHold bounds keeping a message that has no buckets (group "-").
	maxHold = time.Minute
	// hopPause is how long a message that could not be moved is kept.
	hopPause = time.Second
)

// subscription is one channel with one consumer, and ends with it. Tags are
// the channel's own below the subscription's number, so that a delivery can
// never be settled through another subscription than its own.
type subscription struct {
	q          *Queue
	s          *session
	ch         *amqp.Channel
	group      string
	from       string // the queue's name
	consumer   string
	number     uint64
	deliveries <-chan amqp.Delivery
	c          chan queue.Received

	stop     chan struct{} // closed by Stop
	stopOnce sync.Once
	broken   chan struct{} // closed when the channel is gone
	ended    chan struct{} // closed when the pump is, and c with it
	life     context.Context
	cancel   context.CancelFunc

	mu        sync.Mutex
	unsettled map[uint64]bool // the channel's tags
	err       error

	emitters, hops, watchers sync.WaitGroup
	closeOnce                sync.Once
	closeErr                 error
}

// tagBits is how many bits of a tag are the channel's.
const tagBits = 40

func newSubscription(q *Queue, s *session, ch *amqp.Channel, group, from string, number uint64) *subscription {
	sub := &subscription{
		q: q, s: s, ch: ch, group: group, from: from, number: number,
		consumer:  fmt.Sprintf("hookonce-%d", number),
		c:         make(chan queue.Received),
		stop:      make(chan struct{}),
		broken:    make(chan struct{}),
		ended:     make(chan struct{}),
		unsettled: map[uint64]bool{},
	}
	sub.life, sub.cancel = context.WithCancel(context.Background())
	return sub
}

func (s *subscription) start() {
	closed := s.ch.NotifyClose(make(chan *amqp.Error, 1))
	s.watchers.Go(func() {
		if e := <-closed; e != nil {
			s.fail(e)
		}
		close(s.broken)
	})
	s.watchers.Go(s.pump)
}

// fail keeps the first reason.
func (s *subscription) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// pump hands out what the broker delivers.
func (s *subscription) pump() {
	defer close(s.ended)
	s.deliver()
	s.emitters.Wait()
	close(s.c)
}

func (s *subscription) deliver() {
	for {
		select {
		case d, ok := <-s.deliveries:
			if !ok {
				s.lost()
				return
			}
			s.receive(d)
		case <-s.stop:
			s.end()
			return
		}
	}
}

// lost is the end that nobody here asked for.
func (s *subscription) lost() {
	select {
	case <-s.stop:
	case <-s.broken:
		s.fail(errors.New("the connection was closed"))
	default:
		if s.ch.IsClosed() {
			<-s.broken // the reason is on its way
			s.fail(errors.New("the connection was closed"))
			return
		}
		s.fail(fmt.Errorf("the broker ended the subscription to %s: was the queue deleted?", s.from))
	}
}

// end asks the broker for no more, and gives back what is here already.
func (s *subscription) end() {
	_ = s.s.call(func() error { return s.ch.Cancel(s.consumer, false) })
	for d := range s.deliveries {
		s.register(d.DeliveryTag)
		_ = s.giveBack(d.DeliveryTag)
	}
}

func (s *subscription) register(tag uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsettled[tag] = true
}

// receive decides what becomes of one delivery.
func (s *subscription) receive(d amqp.Delivery) {
	s.register(d.DeliveryTag)
	now := time.Now()
	r := queue.Received{At: now, Tag: s.number<<tagBits | d.DeliveryTag}
	r.Delivery, r.Invalid = wire.Decode(fromDelivery(d))
	if r.ReceivedAt.IsZero() {
		r.ReceivedAt = now // another publisher's, without a time
	}
	wait := r.Due.Sub(now)
	switch {
	case r.Invalid != nil || wait <= 0 || s.from == DeadQueue(s.group):
		s.emit(r)
	case wait <= early || s.group == queue.Unrouted:
		s.emitters.Go(func() { s.hold(r, d.DeliveryTag, wait) })
	default:
		s.hops.Go(func() { s.hop(r, d.DeliveryTag) })
	}
}

func (s *subscription) emit(r queue.Received) {
	select {
	case s.c <- r:
	case <-s.stop:
		_ = s.giveBack(r.Tag & (1<<tagBits - 1))
	case <-s.broken:
	}
}

// hold keeps a delivery until its time.
func (s *subscription) hold(r queue.Received, tag uint64, wait time.Duration) {
	t := time.NewTimer(min(wait, maxHold))
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.stop:
		_ = s.giveBack(tag)
		return
	case <-s.broken:
		return
	}
	if wait > maxHold {
		_ = s.giveBack(tag)
		return
	}
	r.At = time.Now()
	s.emit(r)
}

// hop sends a message that came back too early into the next bucket.
func (s *subscription) hop(r queue.Received, tag uint64) {
	err := s.move(s.life, RetryQueue(s.group, bucketFor(time.Until(r.Due))), r.Delivery, tag)
	if err == nil || s.life.Err() != nil {
		return
	}
	s.q.cfg.Logger.Warn("an event could not be kept away any longer; will try again", "group", s.group, "key", r.Key.String(), "err", err)
	t := time.NewTimer(hopPause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.life.Done():
	case <-s.broken:
	}
	_ = s.giveBack(tag)
}

// C implements queue.Subscription.
func (s *subscription) C() <-chan queue.Received { return s.c }

// Stop implements queue.Subscription.
func (s *subscription) Stop() { s.stopOnce.Do(func() { close(s.stop) }) }

// Close implements queue.Subscription.
func (s *subscription) Close() error {
	s.closeOnce.Do(func() {
		s.Stop()
		s.cancel()
		<-s.ended
		s.hops.Wait()
		err := s.s.call(s.ch.Close)
		s.watchers.Wait()
		if !errors.Is(err, amqp.ErrClosed) {
			s.closeErr = err
		}
	})
	return s.closeErr
}

// Err implements queue.Subscription.
func (s *subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("subscription to %s ended: %w", s.from, s.err)
}

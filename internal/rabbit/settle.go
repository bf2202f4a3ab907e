package rabbit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

// errEnded says that a delivery's channel is gone: the broker delivers it anew.
var errEnded = errors.New("the subscription has ended; the event comes again")

// tagOf is the channel's tag of a delivery, if it is this subscription's.
func (s *subscription) tagOf(r queue.Received) (uint64, bool) {
	return r.Tag & (1<<tagBits - 1), r.Tag>>tagBits == s.number
}

// Ack implements queue.Subscription. Deliveries of another subscription and
// those settled before are passed over.
func (s *subscription) Ack(_ context.Context, rs ...queue.Received) error {
	tags := make([]uint64, 0, len(rs))
	for _, r := range rs {
		if tag, ok := s.tagOf(r); ok {
			tags = append(tags, tag)
		}
	}
	return s.ack(tags)
}

// ack settles tags with as few frames as it can: everything below the lowest
// tag that stays unsettled goes with one.
//
// The lock is held while the frames are written. A tag that another goroutine
// has taken out, but not yet acked, could else be covered here and acked twice,
// for which the broker closes the channel.
func (s *subscription) ack(tags []uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tags = slices.DeleteFunc(tags, func(tag uint64) bool {
		known := s.unsettled[tag]
		delete(s.unsettled, tag)
		return !known
	})
	if len(tags) == 0 {
		return s.alive()
	}
	slices.Sort(tags)
	lowest := ^uint64(0)
	if len(tags) > 1 {
		for tag := range s.unsettled {
			lowest = min(lowest, tag)
		}
	}
	n, _ := slices.BinarySearch(tags, lowest)
	if n > 1 {
		if err := s.ch.Ack(tags[n-1], true); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
		tags = tags[n:]
	}
	for _, tag := range tags {
		if err := s.ch.Ack(tag, false); err != nil {
			return fmt.Errorf("ack: %w", err)
		}
	}
	return nil
}

func (s *subscription) alive() error {
	if s.ch.IsClosed() {
		return errEnded
	}
	return nil
}

// Requeue implements queue.Subscription.
func (s *subscription) Requeue(_ context.Context, rs ...queue.Received) error {
	var errs []error
	for _, r := range rs {
		if tag, ok := s.tagOf(r); ok {
			errs = append(errs, s.giveBack(tag))
		}
	}
	return errors.Join(errs...)
}

func (s *subscription) giveBack(tag uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.unsettled[tag] {
		return s.alive()
	}
	delete(s.unsettled, tag)
	if err := s.ch.Nack(tag, false, true); err != nil {
		return fmt.Errorf("requeue: %w", err)
	}
	return nil
}

// Retry implements queue.Subscription. The shortest delay is one second; the
// unrouted queue has no buckets, its subscription keeps the event itself.
func (s *subscription) Retry(ctx context.Context, r queue.Received, d wire.Delivery) error {
	to := GroupQueue(s.group)
	if s.group != queue.Unrouted {
		to = RetryQueue(s.group, bucketFor(time.Until(d.Due)))
	}
	return s.moveReceived(ctx, to, r, d)
}

// Bury implements queue.Subscription. Events of the unrouted queue have no dead
// letters but their rows.
func (s *subscription) Bury(ctx context.Context, r queue.Received, d wire.Delivery) error {
	if s.group == queue.Unrouted {
		return s.Ack(ctx, r)
	}
	d.DeadCopy = true
	return s.moveReceived(ctx, DeadQueue(s.group), r, d)
}

func (s *subscription) moveReceived(ctx context.Context, to string, r queue.Received, d wire.Delivery) error {
	tag, ok := s.tagOf(r)
	if !ok {
		return errEnded
	}
	return s.move(ctx, to, d, tag)
}

// move publishes d to a queue and, once that is confirmed, acks the delivery.
// What can no longer be acked is not published either: it comes again, and
// would be there twice.
func (s *subscription) move(ctx context.Context, to string, d wire.Delivery, tag uint64) error {
	s.mu.Lock()
	known := s.unsettled[tag]
	s.mu.Unlock()
	if !known || s.ch.IsClosed() {
		return errEnded
	}
	if err := s.q.p.Publish(ctx, "", to, wire.Encode(d)); err != nil {
		return fmt.Errorf("move to %s: %w", to, err)
	}
	return s.ack([]uint64{tag})
}

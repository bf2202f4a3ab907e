// Package queue is the port between a consumer and whatever carries events to
// it: RabbitMQ (internal/rabbit) or the queue inside the embedded store
// (internal/store/sqlite). Both pass the suite in queuetest.
//
// A subscription hands out events at least once. Whatever was neither acked,
// moved nor requeued when the subscription ends, or the process dies, comes
// again. Moving an event (Retry, Bury) makes it durable at its new place before
// it leaves the old one: a crash in between leaves two copies, never none.
package queue

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/wire"
)

// Unrouted is the name under which the events that no group wanted, and the
// items that the receiver parked, are subscribed to.
const Unrouted = "-"

// Queue gives a group its events.
type Queue interface {
	// Subscribe starts handing out the events of a group, at most prefetch of
	// them unsettled at a time. It returns once the subscription stands, or
	// with the reason why it does not; it does not retry.
	Subscribe(ctx context.Context, group string, prefetch int) (Subscription, error)
	// Send puts an event into one group's queue, or, with an empty group, sends
	// it to every group that matches it, as a first publication would. nil means
	// it is durably there; any other result means it may or may not be.
	Send(ctx context.Context, group string, d wire.Delivery) error
}

// DeadCopies is a queue that keeps copies of dead letters apart, where an
// operator may look at them with a broker's tools, and shovel them back.
type DeadCopies interface {
	// DeadLength is how many copies of a group's dead letters there are.
	DeadLength(ctx context.Context, group string) (int, error)
	// SubscribeDead hands out these copies. Bury puts one at the queue's end.
	SubscribeDead(ctx context.Context, group string, prefetch int) (Subscription, error)
}

// Subscription is a running stream of one group's events. Its methods may be
// called from several goroutines.
type Subscription interface {
	// C delivers. It is closed when Stop was called or the stream broke.
	C() <-chan Received
	// Ack settles events: they do not come again.
	Ack(ctx context.Context, rs ...Received) error
	// Retry keeps an event away until d.Due and delivers d then; r is settled.
	Retry(ctx context.Context, r Received, d wire.Delivery) error
	// Bury puts a copy d where operators look for dead letters, and settles r.
	Bury(ctx context.Context, r Received, d wire.Delivery) error
	// Requeue gives events back at once, unprocessed.
	Requeue(ctx context.Context, rs ...Received) error
	// Stop ends deliveries; what was delivered can still be settled.
	Stop()
	// Close ends the subscription. Unsettled events come again to others.
	Close() error
	// Err says why C was closed; nil after Stop.
	Err() error
}

// Received is one delivered event, to be settled through its subscription.
type Received struct {
	wire.Delivery
	// Invalid, when not nil, says why the message could not be read. Delivery
	// then holds what could be, and at least Body.
	Invalid error
	// At is when it was delivered.
	At time.Time
	// Tag is the subscription's own name of this delivery.
	Tag uint64
}

package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/store/entry"
	"github.com/hookonce/hookonce/internal/wire"
)

// ErrNotDelivered says that an event was not delivered by this subscription,
// or was settled before.
var ErrNotDelivered = errors.New("sqlite queue: not delivered here, or settled before")

// ids are the rows of deliveries that are to be settled.
func (q *subscription) ids(rs []queue.Received) ([]int64, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	ids := make([]int64, len(rs))
	for i, r := range rs {
		id, ok := q.open[r.Tag]
		if !ok {
			return nil, fmt.Errorf("%s: %w", r.Key.Escaped(), ErrNotDelivered)
		}
		ids[i] = id
	}
	return ids, nil
}

// settled frees the places of deliveries, after their rows have changed.
func (q *subscription) settled(rs []queue.Received) {
	q.mu.Lock()
	var ids []int64
	for _, r := range rs {
		if id, ok := q.open[r.Tag]; ok { // not after Close, nor twice
			delete(q.open, r.Tag)
			ids = append(ids, id)
		}
	}
	q.mu.Unlock()
	q.s.untake(q.group, ids...)
	q.s.nudge(q.group)
}

// Ack deletes the rows.
func (q *subscription) Ack(ctx context.Context, rs ...queue.Received) error {
	ids, err := q.ids(rs)
	if err != nil || len(ids) == 0 {
		return err
	}
	if err := q.s.removeRows(ctx, sqlDropRows, ids); err != nil {
		return err
	}
	q.settled(rs)
	return nil
}

// Retry changes the row in place: there is never a second copy.
func (q *subscription) Retry(ctx context.Context, r queue.Received, d wire.Delivery) error {
	rs := []queue.Received{r}
	ids, err := q.ids(rs)
	if err != nil {
		return err
	}
	err = q.s.writeOne(ctx, entry.Size(d.Event), func(ctx context.Context, t *txn) error {
		return t.change(ctx, q.group, ids[0], d)
	})
	if err != nil {
		return err
	}
	q.settled(rs)
	return nil
}

// Bury deletes the row: in the embedded mode the inbox's row is the dead
// letter, and there is no further copy.
func (q *subscription) Bury(ctx context.Context, r queue.Received, _ wire.Delivery) error {
	return q.Ack(ctx, r)
}

// Requeue frees the rows; nothing is written.
func (q *subscription) Requeue(_ context.Context, rs ...queue.Received) error {
	if _, err := q.ids(rs); err != nil {
		return err
	}
	q.settled(rs)
	return nil
}

// Close frees what is unsettled, for other subscriptions of the group.
func (q *subscription) Close() error {
	q.stop()
	<-q.done
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	ids := make([]int64, 0, len(q.open))
	for _, id := range q.open {
		ids = append(ids, id)
	}
	clear(q.open)
	q.mu.Unlock()
	q.s.untake(q.group, ids...)
	q.s.mu.Lock()
	delete(q.s.groups[q.group].subs, q)
	q.s.mu.Unlock()
	q.s.nudge(q.group)
	return nil
}

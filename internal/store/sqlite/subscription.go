package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/store/entry"
	"github.com/hookonce/hookonce/internal/wire"
)

// idlePoll is how often an idle subscription looks for rows without being
// nudged. Every write nudges, so this only covers a clock that was set.
const idlePoll = 200 * time.Millisecond

type subscription struct {
	s        *Store
	group    string
	prefetch int
	c        chan queue.Received // has room for all that is unsettled
	wake     chan struct{}
	ctx      context.Context // ends with Stop
	stop     context.CancelFunc
	done     chan struct{} // closed when run has ended

	mu     sync.Mutex
	open   map[uint64]int64 // unsettled: row id by tag
	closed bool
	err    error
}

func newSubscription(s *Store, group string, prefetch int) *subscription {
	ctx, cancel := context.WithCancel(context.Background())
	return &subscription{
		s: s, group: group, prefetch: prefetch, ctx: ctx, stop: cancel,
		c: make(chan queue.Received, prefetch), wake: make(chan struct{}, 1), done: make(chan struct{}),
		open: map[uint64]int64{},
	}
}

func (q *subscription) C() <-chan queue.Received { return q.c }

func (q *subscription) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

func (q *subscription) Stop() { q.stop() }

// end stops deliveries for a reason.
func (q *subscription) end(reason error) {
	q.mu.Lock()
	if q.err == nil && q.ctx.Err() == nil {
		q.err = reason
	}
	q.mu.Unlock()
	q.stop()
}

func (q *subscription) nudge() {
	select {
	case q.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// run hands out rows until the subscription is stopped or broken.
func (q *subscription) run() {
	defer close(q.done)
	defer close(q.c)
	timer := time.NewTimer(idlePoll)
	defer timer.Stop()
	for {
		wait, err := q.fill()
		if q.ctx.Err() != nil {
			return
		}
		if err != nil {
			q.s.o.Logger.Error("queue cannot be read", "group", q.group, "err", err)
			q.end(q.s.unknown(err))
			return
		}
		timer.Reset(wait)
		select {
		case <-q.wake:
		case <-timer.C:
		case <-q.ctx.Done():
			return
		}
	}
}

// fill hands out rows up to the prefetch and says when to look again at the
// latest.
func (q *subscription) fill() (time.Duration, error) {
	q.mu.Lock()
	free := q.prefetch - len(q.open)
	q.mu.Unlock()
	if free <= 0 {
		return idlePoll, nil
	}
	ctx, cancel := context.WithTimeout(q.ctx, 5*time.Second)
	defer cancel()
	now := q.s.o.Now().UnixMilli()
	ids, err := q.ready(ctx, now, free)
	if err != nil {
		return 0, err
	}
	// Taken before they are read: a row that was settled in between is then
	// seen to be gone, or not due any more.
	ids = q.s.take(q.group, ids, free)
	if len(ids) > 0 {
		if err := q.deliver(ctx, ids, now); err != nil {
			return 0, err
		}
	}
	if len(ids) == free {
		return idlePoll, nil
	}
	return q.untilDue(ctx, now)
}

// ready lists the rows that are due. Those that are handed out are among them,
// at the front: hence so many more.
func (q *subscription) ready(ctx context.Context, now int64, free int) ([]int64, error) {
	rows, err := q.s.reads.QueryContext(ctx, "select id from hookonce_queue where grp = ? and due <= ? order by due, id limit ?",
		q.group, now, q.s.takenCount(q.group)+free)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	var ids []int64
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// untilDue is the time until the next row becomes due, at most idlePoll.
func (q *subscription) untilDue(ctx context.Context, now int64) (time.Duration, error) {
	var due *int64
	err := q.s.reads.QueryRowContext(ctx, "select min(due) from hookonce_queue where grp = ? and due > ?", q.group, now).Scan(&due)
	if err != nil || due == nil {
		return idlePoll, err
	}
	left := time.UnixMilli(*due).Sub(q.s.o.Now())
	return min(max(left, time.Millisecond), idlePoll), nil
}

// deliver reads rows that were taken and hands them out in the order of ids.
func (q *subscription) deliver(ctx context.Context, ids []int64, now int64) error {
	payloads, err := q.s.payloads(ctx, ids, now)
	if err != nil {
		q.s.untake(q.group, ids...)
		return err
	}
	at := q.s.o.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, id := range ids {
		payload, ok := payloads[id]
		if !ok {
			q.s.untake(q.group, id)
			continue
		}
		r := queue.Received{At: at, Tag: q.s.tags.Add(1)}
		if r.Delivery, err = entry.UnmarshalDelivery(payload); err != nil {
			r.Invalid = err
			r.Delivery = wire.Delivery{}
			r.Body = payload
		}
		q.open[r.Tag] = id
		q.c <- r // has room
	}
	return nil
}

// payloads reads the rows among ids that are still due.
func (s *Store) payloads(ctx context.Context, ids []int64, now int64) (map[int64][]byte, error) {
	list, err := jsonList(ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.reads.QueryContext(ctx,
		"select id, payload from hookonce_queue where id in (select value from json_each(?)) and due <= ?", list, now)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	out := make(map[int64][]byte, len(ids))
	for rows.Next() {
		var id int64
		var payload []byte
		if err := rows.Scan(&id, &payload); err != nil {
			return nil, err
		}
		out[id] = payload
	}
	return out, rows.Err()
}

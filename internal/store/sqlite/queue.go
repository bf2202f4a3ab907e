package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/store/entry"
	"github.com/hookonce/hookonce/internal/wire"
)

var _ queue.Queue = (*Store)(nil)

var errNoQueue = errors.New("sqlite store: opened without Options.Route, so it is no queue")

// group is what the subscriptions of one group share. Which rows are handed out
// is known here alone, not in the file: after a crash all of them are free.
type group struct {
	taken map[int64]struct{} // ids of the rows that are handed out
	subs  map[*subscription]struct{}
}

// enqueue writes a row for each of the groups.
func (t *txn) enqueue(ctx context.Context, groups []string, d wire.Delivery, now int64, b bound) error {
	payload := entry.MarshalDelivery(d)
	n := int64(len(groups))
	if err := t.reserve(n, n*int64(len(payload)), b); err != nil {
		return err
	}
	return t.addRows(ctx, groups, payload, dueMillis(d.Due, now), now)
}

// addRows writes rows that were counted in.
func (t *txn) addRows(ctx context.Context, groups []string, payload []byte, due, now int64) error {
	for _, g := range groups {
		if _, err := t.exec(ctx, sqlAddRow, g, due, now, len(payload), payload); err != nil {
			return err
		}
	}
	t.wake = append(t.wake, groups...)
	return nil
}

// dueMillis is the first millisecond at which a row may be delivered. Rows that
// may run now are due now: that keeps them in line behind those that waited.
func dueMillis(due time.Time, now int64) int64 {
	if due.IsZero() {
		return now
	}
	return max(now, due.Add(time.Millisecond-time.Nanosecond).UnixMilli())
}

// Send puts an event into the queue of one group, or of all that match it; see
// queue.Queue. The bounds of the store do not apply: what is sent was accepted
// before.
func (s *Store) Send(ctx context.Context, group string, d wire.Delivery) error {
	if s.o.Route == nil {
		return errNoQueue
	}
	return s.writeOne(ctx, entry.Size(d.Event), func(ctx context.Context, t *txn) error {
		groups := []string{group}
		if group == "" {
			groups = s.route(d.Event)
		}
		return t.enqueue(ctx, groups, d, s.o.Now().UnixMilli(), unbounded)
	})
}

// Subscribe hands out the events of a group; see queue.Queue.
func (s *Store) Subscribe(ctx context.Context, name string, prefetch int) (queue.Subscription, error) {
	if s.o.Route == nil {
		return nil, errNoQueue
	}
	if err := s.Ping(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	g := s.groups[name]
	if g == nil {
		g = &group{taken: map[int64]struct{}{}, subs: map[*subscription]struct{}{}}
		s.groups[name] = g
	}
	sub := newSubscription(s, name, max(prefetch, 1))
	g.subs[sub] = struct{}{}
	go sub.run()
	return sub, nil
}

// nudge makes the subscriptions of groups look for rows now.
func (s *Store) nudge(names ...string) {
	if len(names) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if g := s.groups[name]; g != nil {
			for sub := range g.subs {
				sub.nudge()
			}
		}
	}
}

// endSubscriptions closes all of them and waits for their goroutines.
func (s *Store) endSubscriptions() {
	s.mu.Lock()
	var subs []*subscription
	for _, g := range s.groups {
		for sub := range g.subs {
			subs = append(subs, sub)
		}
	}
	s.mu.Unlock()
	for _, sub := range subs {
		sub.end(ErrClosed)
		<-sub.done
	}
}

// take marks those of the ids as handed out that were not, at most n.
func (s *Store) take(name string, ids []int64, n int) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.groups[name].taken
	var got []int64
	for _, id := range ids {
		if len(got) == n {
			break
		}
		if _, ok := taken[id]; !ok {
			taken[id] = struct{}{}
			got = append(got, id)
		}
	}
	return got
}

// untake makes rows free to be handed out, or forgets that they were.
func (s *Store) untake(name string, ids ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		delete(s.groups[name].taken, id)
	}
}

func (s *Store) takenCount(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.groups[name].taken)
}

// change makes a row of a group deliver d at its due time. A row that is gone,
// because an ack whose caller had left was carried out, is written anew.
func (t *txn) change(ctx context.Context, group string, id int64, d wire.Delivery) error {
	now := t.s.o.Now().UnixMilli()
	var size int64
	err := t.stmt(ctx, sqlRowSize).QueryRowContext(ctx, id).Scan(&size)
	if errors.Is(err, sql.ErrNoRows) {
		return t.enqueue(ctx, []string{group}, d, now, unbounded)
	}
	if err != nil {
		return err
	}
	payload := entry.MarshalDelivery(d)
	if _, err := t.exec(ctx, sqlChangeRow, dueMillis(d.Due, now), len(payload), payload, id); err != nil {
		return err
	}
	t.bytes += int64(len(payload)) - size
	return nil
}

// jsonList writes ids for SQLite's json_each: one statement fits any number.
func jsonList(ids []int64) (string, error) {
	list, err := json.Marshal(ids)
	return string(list), err
}

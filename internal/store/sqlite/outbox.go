package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/store/entry"
	"github.com/hookonce/hookonce/internal/wire"
)

// reserve counts in what the claim's event takes; beyond the bounds it changes
// nothing and returns hookonce.ErrOutboxFull.
func (p *claiming) reserve(t *txn) error {
	n := int64(max(len(p.groups), 1))
	return t.reserve(n, n*int64(len(p.event)), bounded)
}

// accept writes a claimed event, which was counted in, where it waits.
func (t *txn) accept(ctx context.Context, p *claiming, id, now int64) error {
	if p.groups != nil {
		return t.addRows(ctx, p.groups, p.event, now, now)
	}
	_, err := t.exec(ctx, sqlAddEntry, id, now, len(p.event), p.event)
	return err
}

// route is where a new event goes.
func (s *Store) route(e hookonce.Event) []string {
	if e.Parked == "" {
		if groups := s.o.Route(e); len(groups) > 0 {
			return groups
		}
	}
	return []string{queue.Unrouted}
}

// bound says whether the limits of the store apply to a write.
type bound bool

const (
	bounded   bound = true
	unbounded bound = false
)

// reserve counts events in that are about to be written.
func (t *txn) reserve(events, bytes int64, b bound) error {
	if b && (t.events+events > t.s.o.MaxEvents || t.bytes+bytes > t.s.o.MaxBytes) {
		return fmt.Errorf("%w: %d events, %d bytes", hookonce.ErrOutboxFull, t.events, t.bytes)
	}
	t.events += events
	t.bytes += bytes
	return nil
}

// Pending returns entries; see publisher.Outbox. An entry that cannot be read
// is left where it is, logged, and not returned.
func (s *Store) Pending(ctx context.Context, after hookonce.EntryID, n int) ([]hookonce.Entry, error) {
	var out []hookonce.Entry
	for last := int64(after.Lo); len(out) < n; {
		read, next, err := s.page(ctx, last, n-len(out))
		if err != nil {
			return nil, s.unknown(err)
		}
		out = append(out, read...)
		if next == last || len(out) > 0 {
			break // at the end, or with a page; else behind entries that cannot be read
		}
		last = next
	}
	return out, nil
}

// page reads up to n entries behind an id, fewer when they are large, and says
// where it ended.
func (s *Store) page(ctx context.Context, after int64, n int) (out []hookonce.Entry, last int64, err error) {
	rows, err := s.reads.QueryContext(ctx, "select id, event from hookonce_outbox where id > ? order by id limit ?", after, n)
	if err != nil {
		return nil, after, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	last = after
	for size := 0; size < entry.PageBytes && rows.Next(); {
		var data sql.RawBytes
		if err := rows.Scan(&last, &data); err != nil {
			return nil, after, err
		}
		size += len(data)
		e, err := entry.Unmarshal(data)
		if err != nil {
			s.o.Logger.ErrorContext(ctx, "outbox entry cannot be read and stays where it is", "entry", last, "err", err)
			continue
		}
		out = append(out, hookonce.Entry{ID: hookonce.EntryID{Lo: uint64(last)}, Event: e})
	}
	return out, last, rows.Err()
}

// Settle removes entries; see publisher.Outbox.
func (s *Store) Settle(ctx context.Context, entries []hookonce.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	ids := make([]int64, len(entries))
	for i, e := range entries {
		ids[i] = int64(e.ID.Lo)
	}
	return s.removeRows(ctx, sqlSettle, ids)
}

// removeRows deletes rows by id, with the others that wait for a commit.
func (s *Store) removeRows(ctx context.Context, query string, ids []int64) error {
	list, err := jsonList(ids)
	if err != nil {
		return err
	}
	return s.writeOne(ctx, 0, func(ctx context.Context, t *txn) error { return t.remove(ctx, query, list) })
}

// Adopt has nothing to do: the file has one owner, and what an earlier one left
// is this one's from the start.
func (s *Store) Adopt(ctx context.Context, _ int) (int, error) { return 0, ctx.Err() }

// Stats is the size of the outbox, or of the queue in the queue mode.
func (s *Store) Stats(ctx context.Context) (entry.Stats, error) {
	var st entry.Stats
	var at sql.NullInt64
	// The lowest id is the oldest: each query reads one row.
	err := s.reads.QueryRowContext(ctx, `select events, bytes, min(
  coalesce((select at from hookonce_outbox order by id limit 1), 9223372036854775807),
  coalesce((select at from hookonce_queue order by id limit 1), 9223372036854775807)) from hookonce_counters`).
		Scan(&st.Events, &st.Bytes, &at)
	if err != nil {
		return entry.Stats{}, s.unknown(err)
	}
	if st.Events > 0 {
		st.Oldest = time.UnixMilli(at.Int64).UTC()
	}
	return st, nil
}

// adoptOutbox moves what an earlier configuration left in the outbox into the
// queue, when the store is the queue now: nothing accepted is forgotten.
func (s *Store) adoptOutbox(ctx context.Context) error {
	if s.o.Route == nil {
		return nil
	}
	after := hookonce.EntryID{}
	for {
		entries, err := s.Pending(ctx, after, 100)
		if err != nil || len(entries) == 0 {
			return err
		}
		err = s.writeOne(ctx, 0, func(ctx context.Context, t *txn) error { return t.moveEntries(ctx, entries) })
		if err != nil {
			return err
		}
		after = entries[len(entries)-1].ID
	}
}

func (t *txn) moveEntries(ctx context.Context, entries []hookonce.Entry) error {
	now := t.s.o.Now().UnixMilli()
	ids := make([]int64, len(entries))
	for i, e := range entries {
		if err := t.enqueue(ctx, t.s.route(e.Event), wire.Delivery{Event: e.Event}, now, unbounded); err != nil {
			return err
		}
		ids[i] = int64(e.ID.Lo)
	}
	list, err := jsonList(ids)
	if err != nil {
		return err
	}
	return t.remove(ctx, sqlSettle, list)
}

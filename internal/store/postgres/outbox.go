package postgres

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
)

const (
	// chunk is how many entries one statement removes or moves.
	chunk = 1000
)

// Pending returns entries; see publisher.Outbox. Besides n, a page ends once
// it holds 8 MiB of encoded events: a short page is not the last one, an empty
// page is. An entry that cannot be read is left where it is, logged, and not
// returned.
func (s *Store) Pending(ctx context.Context, after hookonce.EntryID, n int) ([]hookonce.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	me, err := s.ready(ctx)
	if err != nil {
		return nil, s.unknown(err)
	}
	for last := int64(after.Lo); n > 0; {
		page, next, err := s.page(ctx, me, last, n)
		if err = s.unknown(err); err != nil {
			return nil, err
		}
		if len(page) > 0 || next == last {
			return page, nil
		}
		last = next // nothing but unreadable ones
	}
	return nil, nil
}

// page reads entries behind an id, and says where it ended.
func (s *Store) page(ctx context.Context, me instance, after int64, n int) (out []hookonce.Entry, last int64, err error) {
	rows, err := s.pool.Query(ctx, s.sql.pending, me.id, after, n, int64(entry.PageBytes))
	if err != nil {
		return nil, after, err
	}
	defer rows.Close()
	last = after
	for rows.Next() {
		var data []byte
		if err := rows.Scan(&last, &data); err != nil {
			return nil, after, err
		}
		e, err := entry.Unmarshal(data)
		if err != nil {
			s.o.Logger.ErrorContext(ctx, "outbox entry cannot be read and stays where it is", "entry", last, "err", err)
			continue
		}
		out = append(out, hookonce.Entry{ID: me.entry(last), Event: e})
	}
	return out, last, rows.Err()
}

// Settle removes entries; see publisher.Outbox.
func (s *Store) Settle(ctx context.Context, entries []hookonce.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	me, err := s.ready(ctx)
	if err != nil {
		return s.unknown(err)
	}
	defer s.nudge()
	for len(entries) > 0 {
		n := min(len(entries), chunk)
		ids := make([]int64, n)
		for i, e := range entries[:n] {
			ids[i] = int64(e.ID.Lo)
		}
		if err := s.unknown(s.remove(ctx, me, ids)); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

func (s *Store) remove(ctx context.Context, me instance, ids []int64) error {
	s.books.RLock()
	defer s.books.RUnlock()
	var gone size
	err := s.pool.QueryRow(ctx, s.sql.settle, me.id, ids).Scan(&gone.events, &gone.bytes)
	if err != nil {
		s.books.doubt()
		return err
	}
	s.books.add(-gone.events, -gone.bytes)
	return nil
}

// Stats is the size of the outboxes of all instances: one count each, and a
// look at the first entry of each. Of other instances it is up to half a
// second old.
func (s *Store) Stats(ctx context.Context) (entry.Stats, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	var st entry.Stats
	if err := s.recount(ctx); err != nil {
		if ctx.Err() != nil {
			return st, s.unknown(err)
		}
		s.o.Logger.DebugContext(ctx, "the outbox could not be counted anew", "err", err)
	}
	if err := s.touch(ctx); err != nil {
		return st, s.unknown(err)
	}
	var at *int64
	if err := s.unknown(s.pool.QueryRow(ctx, s.sql.stats).Scan(&at)); err != nil {
		return st, err
	}
	if at == nil {
		return st, nil
	}
	s.books.mu.Lock()
	total := s.books.own().plus(s.books.others)
	s.books.mu.Unlock()
	// There is at least one entry, whatever was counted.
	st.Events, st.Bytes, st.Oldest = max(total.events, 1), max(total.bytes, 1), time.UnixMilli(*at).UTC()
	return st, nil
}

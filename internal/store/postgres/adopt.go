package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// adoptTime ends an Adopt early, so that the lease is renewed in time however
// slow the server is.
const adoptTime = 2 * time.Second

// Adopt renews the lease and takes entries over; see publisher.Outbox. It may
// take fewer than there are: the next one goes on.
func (s *Store) Adopt(ctx context.Context, n int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := s.touch(ctx); err != nil {
		return 0, s.unknown(err)
	}
	me, err := s.ready(ctx)
	if err != nil {
		return 0, s.unknown(err)
	}
	ended, err := s.ended(ctx, me)
	if err != nil {
		return 0, s.unknown(err)
	}
	total, start := 0, time.Now()
	for _, id := range ended {
		for total < n && time.Since(start) < adoptTime {
			want := min(n-total, chunk)
			moved, err := s.move(ctx, me, id, want)
			total += moved
			if err != nil {
				return total, s.unknown(err)
			}
			if moved < want {
				break
			}
		}
	}
	if total > 0 {
		return total, s.unknown(s.touch(ctx))
	}
	return 0, nil
}

// ended names instances that left entries and whose lease has ended.
func (s *Store) ended(ctx context.Context, me instance) ([]int64, error) {
	rows, err := s.pool.Query(ctx, s.sql.ended, me.id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func (s *Store) move(ctx context.Context, me instance, from int64, n int) (int, error) {
	s.books.RLock()
	defer s.books.RUnlock()
	base := me.last.Add(int64(n)) - int64(n)
	var moved size
	err := s.pool.QueryRow(ctx, s.sql.adopt, me.id, from, n, base).Scan(&moved.events, &moved.bytes)
	if err != nil {
		s.books.doubt()
		return 0, err
	}
	s.books.add(moved.events, moved.bytes)
	return int(moved.events), nil
}

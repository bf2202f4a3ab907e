package postgres

import (
	"context"
	"time"
)

const (
	maintainEvery = time.Minute
	expireBatch   = 1000
)

// Run is the upkeep, until ctx ends: it removes expired claims, a batch at a
// time with rests between them, and forgets instances that ended long ago.
// Claims are free from the moment they expire; this only gives the space back.
// Several instances may run it at once: they share the work. Faults are logged
// and tried again a minute later.
func (s *Store) Run(ctx context.Context) {
	for {
		if _, err := s.Maintain(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.WarnContext(ctx, "expired claims could not be removed", "err", err)
		}
		if !rest(ctx, maintainEvery) {
			return
		}
	}
}

// Maintain removes what has expired by now, and says how many claims it were.
func (s *Store) Maintain(ctx context.Context) (int, error) {
	for _, statement := range []string{s.sql.forget, s.sql.orphans} {
		if _, err := s.pool.Exec(ctx, statement); err != nil {
			return 0, s.unknown(err)
		}
	}
	total, from, now := 0, int64(0), s.o.Now().UnixMilli()
	for {
		start := time.Now()
		var n, last int64
		err := s.pool.QueryRow(ctx, s.sql.expire, now, from, expireBatch).Scan(&n, &last)
		if err != nil {
			return total, s.unknown(err)
		}
		total += int(n)
		if n < expireBatch {
			return total, nil
		}
		from = last
		if !rest(ctx, time.Since(start)) { // at most half of the time
			return total, ctx.Err()
		}
	}
}

// rest waits, and reports whether ctx goes on.
func rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

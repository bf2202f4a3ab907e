package sqlite

import (
	"context"
	"time"
)

const (
	expireEvery = time.Minute
	expireBatch = 500
)

// Run removes expired claims until ctx ends: a batch at a time, so that claims
// never wait for it long. They are free from the moment they expire; this only
// gives the space back. Faults are logged and tried again a minute later.
func (s *Store) Run(ctx context.Context) {
	for {
		if _, err := s.Maintain(ctx); err != nil && ctx.Err() == nil {
			s.o.Logger.WarnContext(ctx, "expired claims could not be removed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(expireEvery):
		}
	}
}

// Maintain removes what has expired by now, and says how many claims it were.
func (s *Store) Maintain(ctx context.Context) (int, error) {
	total := 0
	for {
		var n int64
		err := s.writeOne(ctx, 0, func(ctx context.Context, t *txn) error {
			res, err := t.exec(ctx, sqlExpire, t.s.o.Now().UnixMilli(), expireBatch)
			if err != nil {
				return err
			}
			n, err = res.RowsAffected()
			return err
		})
		if err != nil {
			return total, err
		}
		total += int(n)
		if n < expireBatch {
			return total, nil
		}
	}
}

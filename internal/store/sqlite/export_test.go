package sqlite

import (
	"context"
	"errors"

	"github.com/hookonce/hookonce"
)

// Exec runs SQL on the write connection, between two group commits.
func (s *Store) Exec(ctx context.Context, query string) error {
	_, err := s.db.ExecContext(ctx, query)
	return err
}

// errPoison is what a test's part fails with.
var errPoison = errors.Join(hookonce.ErrInvalid, errors.New("poison"))

// Poison is a part of a commit that writes and then fails for its data.
func (s *Store) Poison(ctx context.Context) error {
	return s.writeOne(ctx, 0, func(ctx context.Context, t *txn) error {
		if err := t.reserve(1000, 1000, unbounded); err != nil {
			return err
		}
		t.wake = append(t.wake, "nobody")
		if _, err := t.exec(ctx, sqlAddEntry, nil, 1, 1, []byte("poison")); err != nil {
			return err
		}
		return errPoison
	})
}

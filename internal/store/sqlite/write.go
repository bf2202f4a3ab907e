package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
)

// op is one caller's share of a group commit: parts that succeed or fail each
// for itself, in one transaction, in their order.
type op struct {
	parts []part
	bytes int
}

// part does its writes through t. A transaction that is repeated runs it again.
type part func(ctx context.Context, t *txn) error

// Size lets large events fill a batch sooner.
func (o *op) Size() int { return o.bytes }

// txn is the running transaction and what it changes.
type txn struct {
	s      *Store
	tx     *sql.Tx
	counts          // what waits, as this transaction sees it
	wake   []string // groups that got a row
	// Claims, and of them those whose key was taken.
	claims, known int
}

// counts is the row of hookonce_counters.
type counts struct{ events, bytes int64 }

func (t *txn) stmt(ctx context.Context, query string) *sql.Stmt {
	return t.tx.StmtContext(ctx, t.s.stmts[query])
}

func (t *txn) exec(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return t.stmt(ctx, query).ExecContext(ctx, args...)
}

// remove runs a delete that returns the sizes of the rows, and counts them off.
func (t *txn) remove(ctx context.Context, query string, args ...any) error {
	rows, err := t.stmt(ctx, query).QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var size int64
		if err := rows.Scan(&size); err != nil {
			return err
		}
		t.events--
		t.bytes -= size
	}
	return rows.Err()
}

// write runs parts in the next group commit. It returns one error a part, which
// concerns that part's data alone, or an error for all, which wraps
// hookonce.ErrUnknown.
func (s *Store) write(ctx context.Context, bytes int, parts ...part) ([]error, error) {
	errs, err := s.writer.Do(ctx, &op{parts: parts, bytes: bytes})
	return errs, s.unknown(err)
}

// writeOne is write for a single part.
func (s *Store) writeOne(ctx context.Context, bytes int, p part) error {
	errs, err := s.write(ctx, bytes, p)
	if err != nil {
		return err
	}
	return errs[0]
}

// errApart says that a part failed for its data: the batch is tried again with
// a savepoint around each.
var errApart = errors.New("a part failed")

// commit carries out a batch in one transaction. Savepoints are paid for only
// after a part has failed.
func (s *Store) commit(ctx context.Context, ops []*op) ([][]error, error) {
	out, err := s.transaction(ctx, ops, together)
	if errors.Is(err, errApart) {
		out, err = s.transaction(ctx, ops, apart)
	}
	s.up(err)
	return out, err
}

func (s *Store) transaction(ctx context.Context, ops []*op, run func(context.Context, *txn, part) (error, error)) ([][]error, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback() //nolint:errcheck // no-op after commit
	t := &txn{s: s, tx: tx}
	if err := t.stmt(ctx, sqlCounts).QueryRowContext(ctx).Scan(&t.events, &t.bytes); err != nil {
		return nil, err
	}
	before := t.counts
	out := make([][]error, len(ops))
	for i, o := range ops {
		out[i] = make([]error, len(o.parts))
		for j, p := range o.parts {
			var fatal error
			if out[i][j], fatal = run(ctx, t, p); fatal != nil {
				return nil, fatal
			}
		}
	}
	if t.counts != before {
		if _, err := t.exec(ctx, sqlSetCounts, t.events, t.bytes); err != nil {
			return nil, err
		}
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	if t.claims > 0 {
		s.lookFirst = 2*t.known > t.claims
	}
	s.nudge(t.wake...)
	return out, nil
}

// together runs a part without a savepoint.
func together(ctx context.Context, t *txn, p part) (partErr, fatal error) {
	err := p(ctx, t)
	if isData(err) {
		return nil, fmt.Errorf("%w: %w", errApart, err)
	}
	return nil, err
}

// apart runs a part within a savepoint, so that its failure is its own.
func apart(ctx context.Context, t *txn, p part) (partErr, fatal error) {
	if _, err := t.tx.ExecContext(ctx, "savepoint part"); err != nil {
		return nil, err
	}
	counts, wake := t.counts, len(t.wake)
	err := p(ctx, t)
	if err != nil && !isData(err) {
		return nil, err
	}
	if err == nil {
		_, err = t.tx.ExecContext(ctx, "release part")
		return nil, err
	}
	t.counts, t.wake = counts, t.wake[:wake]
	if _, fatal = t.tx.ExecContext(ctx, "rollback to part"); fatal != nil {
		return nil, fatal
	}
	if _, fatal = t.tx.ExecContext(ctx, "release part"); fatal != nil {
		return nil, fatal
	}
	if !errors.Is(err, hookonce.ErrInvalid) {
		err = fmt.Errorf("%w: %w", hookonce.ErrInvalid, err)
	}
	return err, nil
}

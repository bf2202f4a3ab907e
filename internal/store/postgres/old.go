package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
)

// Adopt says where an older guard of a source has left what it knows: a table
// with columns idempotency_key, source, status and received_at. Its rows are
// read and never written.
type Adopt struct {
	// Table is the table's name, with a schema where the search path does not
	// reach it.
	Table string
	// Final are the statuses that mean "done". A row of another one, like
	// "processing", leaves the state unknown.
	Final []string
}

var errUnfinished = errors.New("the older guard's row has no status of store.adopt's final: list")

// oldTable is one older guard's table, for all sources that name it.
type oldTable struct {
	find    string
	sources map[string]Adopt
}

func oldTables(adopt map[string]Adopt) []oldTable {
	byName := map[string]*oldTable{}
	for source, a := range adopt {
		t := byName[a.Table]
		if t == nil {
			name := pgx.Identifier(strings.Split(a.Table, ".")).Sanitize()
			t = &oldTable{sources: map[string]Adopt{}, find: `SELECT a.n, o.status::text, o.received_at
				FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS a (source, key, n)
				JOIN ` + name + ` o ON o.source = a.source AND o.idempotency_key = a.key`}
			byName[a.Table] = t
		}
		t.sources[source] = a
	}
	out := make([]oldTable, 0, len(byName))
	for _, t := range byName {
		out = append(out, *t)
	}
	return out
}

// meetOld answers what an older guard knows, and returns the rest. It comes
// before the claim: a key that the guard knows is never claimed anew.
func (s *Store) meetOld(ctx context.Context, items []*claiming) ([]*claiming, error) {
	for i := range s.old {
		if err := s.old[i].meet(ctx, s, items); err != nil {
			return nil, err
		}
	}
	return left(items), nil
}

// checkOld reads nothing from each table: a name that is wrong is told at start.
func (s *Store) checkOld(ctx context.Context) error {
	for i := range s.old {
		rows, err := s.pool.Query(ctx, s.old[i].find, []string{}, []string{})
		if err == nil {
			rows.Close()
			err = rows.Err()
		}
		if c := state(err); strings.HasPrefix(c, "42") || strings.HasPrefix(c, "3F") {
			return fmt.Errorf("store.adopt: a table with columns idempotency_key, source, status and received_at is needed: %w", err)
		}
		if err != nil {
			return s.unknown(err)
		}
	}
	return nil
}

func (t *oldTable) meet(ctx context.Context, s *Store, items []*claiming) error {
	var sources, ids []string
	var asked []*claiming
	var keys []hookonce.Key
	for _, c := range items {
		for _, k := range c.keys {
			// What a text column cannot hold is in no row.
			if _, ok := t.sources[k.Source]; !ok || c.place == done || !utf8.ValidString(k.ID) || strings.ContainsRune(k.ID, 0) {
				continue
			}
			sources, ids, asked, keys = append(sources, k.Source), append(ids, k.ID), append(asked, c), append(keys, k.Key)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	rows, err := s.pool.Query(ctx, t.find, sources, ids)
	if err != nil {
		return err
	}
	var n int64
	var status *string
	var seen *time.Time
	_, err = pgx.ForEachRow(rows, []any{&n, &status, &seen}, func() error {
		c, key := asked[n-1], keys[n-1]
		switch {
		case c.place == done && c.out.Err == nil: // by another of its keys or rows
		case status == nil || !slices.Contains(t.sources[key.Source].Final, *status):
			c.fail(fmt.Errorf("%w: %w", hookonce.ErrUnknown, errUnfinished))
		default:
			// How it was answered, and to which body, is not known: this is as good.
			out := hookonce.Claimed{
				Outcome: hookonce.Duplicate, Key: key, First: c.claim.Answer,
				FirstSeen: time.UnixMilli(c.now).UTC(), Fingerprint: c.claim.Fingerprint,
			}
			if seen != nil {
				out.FirstSeen = seen.UTC()
			}
			c.answer(out)
		}
		return nil
	})
	return err
}

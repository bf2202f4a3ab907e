package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed migrations
var migrations embed.FS

// ErrSchema says that the tables do not fit this program; the wrapping error
// says what to do.
var ErrSchema = errors.New("store schema does not fit")

// prefix is what stands before each table name.
func prefix(schema string) string { return pgx.Identifier{schema}.Sanitize() + "." }

// scripts reads the embedded migrations; the first one makes version 1.
func (s *Store) scripts() ([]string, error) {
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted by name
	if err != nil {
		return nil, fmt.Errorf("postgres: migrations: %w", err)
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return nil, fmt.Errorf("postgres: migrations: %w", err)
		}
		texts[i] = strings.ReplaceAll(string(text), "{p}", prefix(s.o.Schema))
	}
	return texts, nil
}

// Migrate brings the tables to this program's version, all in one transaction.
// Several processes may call it at once; it refuses tables of a newer program.
func (s *Store) Migrate(ctx context.Context) error {
	scripts, err := s.scripts()
	if err != nil {
		return err
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := s.prepareSchema(ctx, tx); err != nil {
			return err
		}
		var at int
		if err := tx.QueryRow(ctx, s.sql.version).Scan(&at); err != nil {
			return err
		}
		if at > len(scripts) {
			return s.ahead(at, len(scripts))
		}
		for ; at < len(scripts); at++ {
			if err := execScript(ctx, tx, scripts[at]); err != nil {
				return fmt.Errorf("migration %d: %w", at+1, err)
			}
			if _, err := tx.Exec(ctx, "INSERT INTO "+prefix(s.o.Schema)+"store_version (version) VALUES ($1)", at+1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrSchema) {
		return fmt.Errorf("postgres: migrate: %w", err)
	}
	return err
}

// execScript runs several statements at once, which only the simple protocol
// can; they hold no parameters.
func execScript(ctx context.Context, tx pgx.Tx, script string) error {
	_, err := tx.Conn().PgConn().Exec(ctx, script).ReadAll()
	return err
}

// prepareSchema makes the place for the version table, under a lock that ends
// with the transaction, so that two processes cannot migrate at once, behind a
// transaction pooler either. The inbox may share the schema, and locks it alike.
func (s *Store) prepareSchema(ctx context.Context, tx pgx.Tx) error {
	h := fnv.New64a()
	_, _ = h.Write([]byte("hookonce inbox " + s.o.Schema))
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", int64(h.Sum64())); err != nil {
		return err
	}
	// CREATE SCHEMA IF NOT EXISTS needs the right to create schemas even when
	// there is nothing to create.
	var n int
	err := tx.QueryRow(ctx, "SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1", s.o.Schema).Scan(&n)
	if err != nil {
		return err
	}
	if n == 0 {
		if _, err := tx.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{s.o.Schema}.Sanitize()); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+prefix(s.o.Schema)+
		"store_version (version integer NOT NULL PRIMARY KEY, at timestamptz NOT NULL DEFAULT now())")
	return err
}

// CheckSchema makes sure that the tables fit this program; those of another
// version are refused with [ErrSchema] and the command to run.
func (s *Store) CheckSchema(ctx context.Context) error {
	scripts, err := s.scripts()
	if err != nil {
		return err
	}
	var at int
	err = s.pool.QueryRow(ctx, s.sql.version).Scan(&at)
	if c := state(err); c == "42P01" || c == "3F000" { // no such table, no such schema
		at, err = 0, nil
	}
	switch {
	case err != nil:
		return s.unknown(err)
	case at < len(scripts):
		return fmt.Errorf("%w: schema %q is at version %d and this program needs %d; run: hookonce migrate up",
			ErrSchema, s.o.Schema, at, len(scripts))
	case at > len(scripts):
		return s.ahead(at, len(scripts))
	}
	return s.checkOld(ctx)
}

func (s *Store) ahead(at, known int) error {
	return fmt.Errorf("%w: schema %q is at version %d and this program knows %d only; "+
		"run the program whose \"hookonce migrate up\" made it, or a newer one", ErrSchema, s.o.Schema, at, known)
}

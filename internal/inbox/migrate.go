package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path"
)

// ErrSchema says that the tables do not fit this program; the wrapping error
// says what to do.
var ErrSchema = errors.New("inbox schema does not fit")

// scripts reads the embedded migrations; the first one makes version 1.
func (b *Inbox) scripts() ([]string, error) {
	names, err := fs.Glob(migrations, path.Join("migrations", b.d.name, "*.sql")) // sorted by name
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("inbox: no migrations for %q: %w", b.d.name, err)
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := fs.ReadFile(migrations, name)
		if err != nil {
			return nil, fmt.Errorf("inbox: read migration: %w", err)
		}
		texts[i] = b.q(string(text))
	}
	return texts, nil
}

// Migrate brings the tables to this program's version, all in one transaction.
// Several processes may call it at once; it refuses tables of a newer program.
func (b *Inbox) Migrate(ctx context.Context) error {
	scripts, err := b.scripts()
	if err != nil {
		return err
	}
	return b.tx(ctx, "migrate", func(tx *sql.Tx) error {
		if err := b.prepare(ctx, tx); err != nil {
			return err
		}
		at, err := b.version(ctx, tx)
		if err != nil {
			return err
		}
		if at > len(scripts) {
			return b.ahead(at, len(scripts))
		}
		for ; at < len(scripts); at++ {
			if _, err := b.exec(ctx, tx, fmt.Sprintf("migration %d", at+1), scripts[at]); err != nil {
				return err
			}
			if _, err := b.exec(ctx, tx, "migrate", `INSERT INTO {p}inbox_version (version, at) VALUES ($1, $2)`,
				at+1, micros(b.now())); err != nil {
				return err
			}
		}
		return nil
	})
}

// prepare makes the place for the version table. In Postgres it first takes a
// lock that ends with the transaction, so that two processes cannot migrate at
// once, behind a transaction pooler either; SQLite has one writer anyway.
func (b *Inbox) prepare(ctx context.Context, tx *sql.Tx) error {
	if b.d.name == Postgres.name {
		h := fnv.New64a()
		_, _ = h.Write([]byte("hookonce inbox " + b.o.Schema))
		if _, err := b.exec(ctx, tx, "migrate: lock", `SELECT pg_advisory_xact_lock($1)`, int64(h.Sum64())); err != nil {
			return err
		}
		// CREATE SCHEMA IF NOT EXISTS needs the right to create schemas even
		// when there is nothing to create.
		var n int
		err := tx.QueryRowContext(ctx, `SELECT count(*) FROM pg_catalog.pg_namespace WHERE nspname = $1`, b.o.Schema).Scan(&n)
		if err != nil {
			return fmt.Errorf("inbox: migrate: %w", err)
		}
		if n == 0 {
			if _, err := b.exec(ctx, tx, "migrate", `CREATE SCHEMA `+quoteIdent(b.o.Schema)); err != nil {
				return err
			}
		}
	}
	_, err := b.exec(ctx, tx, "migrate",
		`CREATE TABLE IF NOT EXISTS {p}inbox_version (version integer NOT NULL PRIMARY KEY, at bigint NOT NULL)`)
	return err
}

// version is the newest migration that was done.
func (b *Inbox) version(ctx context.Context, q querier) (int, error) {
	var at int
	err := q.QueryRowContext(ctx, b.q(`SELECT coalesce(max(version), 0) FROM {p}inbox_version`)).Scan(&at)
	if err != nil {
		return 0, fmt.Errorf("inbox: schema version: %w", err)
	}
	return at, nil
}

// CheckSchema makes sure that the tables fit this program. SQLite tables are
// migrated; Postgres tables are only looked at, and those of another version
// are refused with [ErrSchema] and the command to run.
func (b *Inbox) CheckSchema(ctx context.Context) error {
	if b.d.selfMigrating {
		return b.Migrate(ctx)
	}
	scripts, err := b.scripts()
	if err != nil {
		return err
	}
	at, err := b.version(ctx, b.db)
	if s := sqlState(err); s == "42P01" || s == "3F000" { // no such table, no such schema
		at, err = 0, nil
	}
	switch {
	case err != nil:
		return err
	case at < len(scripts):
		return fmt.Errorf("%w: schema %q is at version %d and this program needs %d; run: hookonce migrate up",
			ErrSchema, b.o.Schema, at, len(scripts))
	case at > len(scripts):
		return b.ahead(at, len(scripts))
	}
	return nil
}

func (b *Inbox) ahead(at, known int) error {
	place := "the file"
	if !b.d.selfMigrating {
		place = fmt.Sprintf("schema %q", b.o.Schema)
	}
	return fmt.Errorf("%w: %s is at version %d and this program knows %d only; "+
		"run the program whose \"hookonce migrate up\" made it, or a newer one", ErrSchema, place, at, known)
}

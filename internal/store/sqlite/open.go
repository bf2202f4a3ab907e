package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"
)

// purpose is what a pool of connections is for.
type purpose int

const (
	writing purpose = iota
	reading
)

// dsn names the file and its pragmas in the words of the modernc driver, which
// ignores those of other drivers silently; hence verify.
func dsn(path string, p purpose) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	slash := filepath.ToSlash(abs)
	if !strings.HasPrefix(slash, "/") {
		slash = "/" + slash // a drive letter
	}
	v := url.Values{}
	for _, pragma := range []string{"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)", "journal_size_limit(67108864)"} {
		v.Add("_pragma", pragma)
	}
	if p == reading {
		v.Add("_pragma", "query_only(1)")
	} else {
		v.Set("_txlock", "immediate") // a deferred one that reads first fails at once when it then writes
	}
	return (&url.URL{Scheme: "file", Path: slash, RawQuery: v.Encode()}).String(), nil
}

func openDB(ctx context.Context, path string, p purpose) (*sql.DB, error) {
	name, err := dsn(path, p)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if p == reading {
		db.SetMaxOpenConns(4)
		db.SetMaxIdleConns(4)
	}
	if err := verify(ctx, db); err != nil {
		_ = db.Close() // the first fault is what matters
		return nil, err
	}
	return db, nil
}

// verify reads back what durability rests on.
func verify(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "pragma journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("journal_mode is %s, not wal: the file system of the data folder lacks what SQLite needs; use a local disk", mode)
	}
	var sync int
	if err := db.QueryRowContext(ctx, "pragma synchronous").Scan(&sync); err != nil {
		return err
	}
	if sync != 2 {
		return fmt.Errorf("synchronous is %d, not 2 (FULL)", sync)
	}
	return nil
}

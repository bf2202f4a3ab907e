package sqlite

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
)

// OpenDB opens the database of an inbox and of the user's own tables: WAL and
// synchronous FULL as in the store, but without a lock, because other programs
// may read and write the file at any time. One connection serves all, so that
// this process never waits for itself; a folder that is missing is made.
func OpenDB(ctx context.Context, path string) (*sql.DB, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	db, err := openDB(ctx, path, writing)
	if err != nil {
		return nil, explain(path, err)
	}
	return db, nil
}

package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/hookonce/hookonce"
)

// ErrClosed says that the store or the subscription is closed.
var ErrClosed = errors.New("sqlite store: closed")

// code is SQLite's primary result code; 0 for any other error.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// isData says that the data of one item is at fault, not the store.
func isData(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return true
	}
	return errors.Is(err, hookonce.ErrInvalid)
}

// explain makes an error one line that names the file and the way out.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*LockedError](err); ok {
		return err
	}
	dir := filepath.Dir(path)
	switch c := code(err); {
	case c == sqlite3.SQLITE_FULL || errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%s: no space left on the disk of %s: free some: %w", path, dir, err)
	case c == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%s is not a SQLite database: restore a backup, or move it away to start empty: %w", path, err)
	case c == sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged: restore a backup, or save what is left with sqlite3's .recover: %w", path, err)
	case c == sqlite3.SQLITE_READONLY, c == sqlite3.SQLITE_CANTOPEN, errors.Is(err, fs.ErrPermission),
		errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be written: let this user write to %s, or set data_dir to another folder: %w", path, dir, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// unknown is explain for a running store: the error also wraps
// hookonce.ErrUnknown.
func (s *Store) unknown(err error) error {
	if err == nil || errors.Is(err, hookonce.ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %w", hookonce.ErrUnknown, explain(s.o.Path, err))
}

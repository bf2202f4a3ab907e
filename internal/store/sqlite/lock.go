package sqlite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// LockInfo is what the owner of a file wrote into its lock file.
type LockInfo struct {
	// PID is the owner's process id; 0 when it has not written it yet.
	PID int `json:"pid"`
	// Admin is the URL of its admin API; empty when it has none.
	Admin string `json:"admin"`
}

// LockedError says that another process, or another store of this one, owns a
// file.
type LockedError struct {
	Path  string
	PID   int
	Admin string
}

// Error names the owner and how to reach it.
func (e *LockedError) Error() string {
	owner := "another process"
	if e.PID != 0 {
		owner = fmt.Sprintf("process %d", e.PID)
	}
	if e.Admin != "" {
		owner += " (admin API " + e.Admin + ")"
	}
	return e.Path + " is in use by " + owner + ": stop it, or speak to its admin API"
}

// FileLock is the ownership of a database file. The operating system ends it
// with the process.
type FileLock struct {
	mu sync.Mutex
	f  *os.File // nil after Unlock
}

// lockName is the lock file of a database file.
func lockName(path string) string { return path + ".lock" }

// Lock makes this process the owner of the database file path, through
// path + ".lock". When it has an owner the error is a [*LockedError].
func Lock(path, admin string) (*FileLock, error) {
	f, err := os.OpenFile(lockName(path), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	l := &FileLock{f: f}
	if err := acquire(f); err != nil {
		info, _ := readInfo(f) // best effort: the owner may not have written it yet
		_ = f.Close()
		if errors.Is(err, errHeld) {
			return nil, &LockedError{Path: path, PID: info.PID, Admin: info.Admin}
		}
		return nil, err
	}
	if err := l.SetAdmin(admin); err != nil {
		return nil, errors.Join(err, l.Unlock())
	}
	return l, nil
}

// acquire tries for a moment, because [ReadLock] holds the lock for an instant.
func acquire(f *os.File) error {
	const tries = 10
	for i := 1; ; i++ {
		err := lockFile(f, true)
		if !errors.Is(err, errHeld) || i == tries {
			return err
		}
		<-time.After(10 * time.Millisecond)
	}
}

// SetAdmin writes the URL of the admin API, once it is known.
func (l *FileLock) SetAdmin(admin string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, err := json.Marshal(LockInfo{PID: os.Getpid(), Admin: admin})
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if _, err := l.f.WriteAt(data, 0); err != nil {
		return err
	}
	return l.f.Truncate(int64(len(data)))
}

// Unlock gives the ownership back. The file stays: removing it could remove
// the lock of a process that took it in between.
func (l *FileLock) Unlock() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	err := errors.Join(l.f.Truncate(0), l.f.Close())
	l.f = nil
	return err
}

// ReadLock says whether the database file path has an owner now, and who it
// is. A file that never had one is simply not held.
func ReadLock(path string) (info LockInfo, held bool, err error) {
	f, err := os.Open(lockName(path))
	if errors.Is(err, fs.ErrNotExist) {
		return LockInfo{}, false, nil
	}
	if err != nil {
		return LockInfo{}, false, err
	}
	defer f.Close() //nolint:errcheck // read only
	switch err := lockFile(f, false); {
	case err == nil:
		return LockInfo{}, false, nil
	case !errors.Is(err, errHeld):
		return LockInfo{}, false, err
	}
	info, err = readInfo(f)
	return info, true, err
}

// readInfo reads a lock file; an empty one is an owner that is just starting.
func readInfo(f *os.File) (LockInfo, error) {
	var info LockInfo
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 64<<10))
	if err != nil || len(data) == 0 {
		return info, err
	}
	if err := json.Unmarshal(data, &info); err != nil {
		return LockInfo{}, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return info, nil
}

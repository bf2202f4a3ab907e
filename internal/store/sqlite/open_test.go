package sqlite_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/sqlite"
)

func TestFilesAreForThisUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, sqlite.Options{Path: filepath.Join(dir, "hookonce.db")})
	claim1(t, s, event("1", "one"))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	must(t, err)
}

func claim1(t *testing.T, s *sqlite.Store, e hookonce.Event) hookonce.Claimed {
	t.Helper()
	got, err := s.ClaimOne(t.Context(), claimOf(e))
	must(t, err)
	return got
}

func TestOwnerIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	if _, held, err := sqlite.ReadLock(path); held || err != nil {
		t.Errorf("never opened: held %v, %v", held, err)
	}
	s := open(t, sqlite.Options{Path: path, Admin: "http://127.0.0.1:8081"})
	_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	locked, ok := errors.AsType[*sqlite.LockedError](err)
	if !ok || locked.PID != os.Getpid() || locked.Admin != "http://127.0.0.1:8081" {
		t.Fatalf("err = %v", err)
	}
	if msg := err.Error(); !strings.Contains(msg, fmt.Sprint(os.Getpid())) || !strings.Contains(msg, locked.Admin) || strings.Contains(msg, "\n") {
		t.Errorf("message %q", msg)
	}
	info, held, err := sqlite.ReadLock(path)
	if !held || err != nil || info.PID != os.Getpid() || info.Admin != locked.Admin {
		t.Errorf("ReadLock: %+v, %v, %v", info, held, err)
	}
	must(t, s.Close())
	if _, held, err := sqlite.ReadLock(path); held || err != nil {
		t.Errorf("after Close: held %v, %v", held, err)
	}
}

func TestCallerMayHoldTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	l, err := sqlite.Lock(path, "")
	must(t, err)
	s := open(t, sqlite.Options{Path: path, Lock: l})
	must(t, l.SetAdmin("http://127.0.0.1:1"))
	must(t, s.Close())
	info, held, err := sqlite.ReadLock(path)
	if !held || err != nil || info.Admin != "http://127.0.0.1:1" {
		t.Errorf("ReadLock: %+v, %v, %v", info, held, err)
	}
	must(t, l.Unlock())
	must(t, l.Unlock())
}

// TestReadersDoNotDisturbAStart: ReadLock holds the lock for an instant.
func TestReadersDoNotDisturbAStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	l, err := sqlite.Lock(path, "")
	must(t, err)
	must(t, l.Unlock())
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, _, err := sqlite.ReadLock(path); err != nil {
					t.Error(err)
				}
			}
		}
	})
	for range 30 {
		l, err := sqlite.Lock(path, "")
		if err != nil {
			t.Error(err)
			break
		}
		must(t, l.Unlock())
	}
	close(stop)
	wg.Wait()
}

func TestOpenErrorsAreOneClearLine(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("x"), 0o600))
	text := filepath.Join(dir, "text.db")
	must(t, os.WriteFile(text, bytes.Repeat([]byte("not a database\n"), 1000), 0o600))
	damaged := filepath.Join(dir, "damaged.db")
	s := open(t, sqlite.Options{Path: damaged})
	must(t, s.Close())
	data, err := os.ReadFile(damaged)
	must(t, err)
	for i := 100; i < len(data); i++ {
		data[i] = 0xee
	}
	must(t, os.WriteFile(damaged, data, 0o600))
	for name, tt := range map[string]struct{ path, want string }{
		"folder is a file": {filepath.Join(file, "hookonce.db"), "set data_dir to another folder"},
		"read-only folder": {"/proc/hookonce-data/hookonce.db", "set data_dir to another folder"},
		"a folder":         {dir, ""},
		"not a database":   {text, "is not a SQLite database"},
		"damaged":          {damaged, "is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(), sqlite.Options{Path: tt.path})
			if err == nil {
				t.Fatal(s.Close(), "no error")
			}
			if msg := err.Error(); !strings.Contains(msg, tt.want) || !strings.Contains(msg, tt.path) || strings.Contains(msg, "\n") {
				t.Errorf("message %q", msg)
			}
		})
	}
}

func TestExpiredClaimsAreRemoved(t *testing.T) {
	now := time.Now()
	path := filepath.Join(t.TempDir(), "hookonce.db")
	s := open(t, sqlite.Options{Path: path, Now: func() time.Time { return now }})
	var cs []hookonce.Claim
	for i := range 1100 {
		cs = append(cs, claimOf(event(fmt.Sprint(i), "one")))
	}
	long := claimOf(event("long", "one"))
	long.TTL = 48 * time.Hour
	_, err := s.Claim(t.Context(), append(cs, long))
	must(t, err)
	now = now.Add(time.Hour)
	if n, err := s.Maintain(t.Context()); n != 1100 || err != nil {
		t.Errorf("removed %d, %v", n, err)
	}
	if n, err := s.Maintain(t.Context()); n != 0 || err != nil {
		t.Errorf("then removed %d, %v", n, err)
	}
	if got := claim1(t, s, event("long", "one")); got.Outcome != hookonce.Duplicate {
		t.Errorf("outcome %v", got.Outcome)
	}
}

package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/sqlite"
)

func TestPoisonedPartFailsAlone(t *testing.T) {
	s := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "hookonce.db")})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if i%8 == 0 {
				if err := s.Poison(t.Context()); !errors.Is(err, hookonce.ErrInvalid) || errors.Is(err, hookonce.ErrUnknown) {
					t.Errorf("poison: %v", err)
				}
				return
			}
			got, err := s.ClaimOne(t.Context(), claimOf(event(fmt.Sprint(i), "one")))
			if err != nil || got.Outcome != hookonce.New {
				t.Errorf("claim beside poison: %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	es, err := s.Pending(t.Context(), hookonce.EntryID{}, 100)
	must(t, err)
	if len(es) != 56 || waiting(t, s) != 56 {
		t.Errorf("%d entries, %d counted; want 56", len(es), waiting(t, s))
	}
}

func TestFullDiskIsUnknownAndClear(t *testing.T) {
	s := open(t, sqlite.Options{Path: filepath.Join(t.TempDir(), "hookonce.db")})
	claim1(t, s, event("before", "one"))
	must(t, s.Exec(t.Context(), "pragma max_page_count = 1")) // at least what is used: the file cannot grow
	large := event("large", "one")
	large.Body = make([]byte, 1<<20)
	_, err := s.ClaimOne(t.Context(), claimOf(large))
	if !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("err = %v", err)
	}
	must(t, s.Exec(t.Context(), "pragma max_page_count = 1000000"))
	if got := claim1(t, s, large); got.Outcome != hookonce.New {
		t.Errorf("with space again: %v", got.Outcome)
	}
	if n := waiting(t, s); n != 2 {
		t.Errorf("%d wait, want 2", n)
	}
}

func TestNewerFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	s := open(t, sqlite.Options{Path: path})
	must(t, s.Exec(t.Context(), "pragma user_version = 99"))
	must(t, s.Close())
	_, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err == nil || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("err = %v", err)
	}
}

func TestUnreadableEntryStaysAndBlocksNobody(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	s := open(t, sqlite.Options{Path: path})
	claim1(t, s, event("1", "one"))
	must(t, s.Exec(t.Context(), "update hookonce_outbox set event = x'ff00'"))
	claim1(t, s, event("2", "one"))
	es, err := s.Pending(t.Context(), hookonce.EntryID{}, 1)
	must(t, err)
	if len(es) != 1 || es[0].Event.Key.ID != "2" || waiting(t, s) != 2 {
		t.Errorf("pending %+v", es)
	}
	must(t, s.Close())
	s = open(t, sqlite.Options{Path: path, Route: byType}) // moves what it can read
	if n := waiting(t, s); n != 2 {
		t.Errorf("%d wait, want 2", n)
	}
	must(t, s.Exec(t.Context(), "update hookonce_queue set payload = x'ff00'"))
	sub := subscribe(t, s, "tickets", 1)
	if r := next(t, sub); r.Invalid == nil || string(r.Body) != "\xff\x00" {
		t.Errorf("got %+v", r)
	}
}

func BenchmarkClaimOne(b *testing.B) {
	s, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(b.TempDir(), "hookonce.db"), MaxEvents: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // a benchmark
	var n sync.Mutex
	i := 0
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n.Lock()
			i++
			id := fmt.Sprint(i)
			n.Unlock()
			if _, err := s.ClaimOne(b.Context(), claimOf(event(id, "one"))); err != nil {
				b.Error(err)
			}
		}
	})
}

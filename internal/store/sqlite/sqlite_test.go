package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/store/storetest"
)

func harness(route func(hookonce.Event) []string) storetest.Harness {
	return storetest.Harness{
		Clock: true,
		Queue: route != nil,
		New: func(t *testing.T) storetest.Backend {
			path := filepath.Join(t.TempDir(), "data", "hookonce.db")
			return storetest.Backend{Open: func(t *testing.T, o storetest.Options) storetest.Store {
				return open(t, sqlite.Options{Path: path, Route: route, MaxEvents: o.MaxEvents, MaxBytes: o.MaxBytes, Now: o.Now})
			}}
		},
	}
}

func open(t *testing.T, o sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestOutboxMode(t *testing.T) { storetest.Run(t, harness(nil)) }

func TestQueueMode(t *testing.T) {
	storetest.Run(t, harness(func(hookonce.Event) []string { return []string{"tickets"} }))
}

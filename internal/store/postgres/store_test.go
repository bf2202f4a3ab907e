package postgres_test

import (
	"log/slog"
	"testing"

	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/storetest"
	"github.com/hookonce/hookonce/internal/testenv"
)

func TestStore(t *testing.T) { suite(t, "") }

// TestStoreWithoutPreparedStatements is how it runs behind a pooler.
func TestStoreWithoutPreparedStatements(t *testing.T) { suite(t, "default_query_exec_mode=exec") }

func suite(t *testing.T, query string) {
	storetest.Run(t, storetest.Harness{Instances: true, Clock: true, Parallel: true, New: func(t *testing.T) storetest.Backend {
		dsn := migrated(t)
		return storetest.Backend{Open: func(t *testing.T, o storetest.Options) storetest.Store {
			return open(t, postgres.StoreOptions{
				DSN: with(t, dsn, query), Instance: o.Instance, Lease: o.Lease, MaxEvents: o.MaxEvents, MaxBytes: o.MaxBytes, Now: o.Now,
			})
		}}
	}})
}

// migrated is a new database with the tables in it.
func migrated(t testing.TB) string {
	t.Helper()
	dsn := testenv.Postgres(t)
	migrate(t, dsn)
	return dsn
}

func migrate(t testing.TB, dsn string) {
	t.Helper()
	s := open(t, postgres.StoreOptions{DSN: dsn, MaxConns: 2})
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, o postgres.StoreOptions) *postgres.Store {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := postgres.OpenStore(t.Context(), o)
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

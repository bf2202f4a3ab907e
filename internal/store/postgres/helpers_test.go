package postgres_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/postgres"
)

// with adds query parameters to a DSN.
func with(t testing.TB, dsn, query string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
	q := u.Query()
	extra, err := url.ParseQuery(query)
	must(t, err)
	for k, v := range extra {
		q[k] = v
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// connect is a plain connection to the server, to prepare and to look.
func connect(t testing.TB, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

func exec(t testing.TB, c *pgx.Conn, statement string, args ...any) {
	t.Helper()
	_, err := c.Exec(t.Context(), statement, args...)
	must(t, err)
}

func one[T any](t testing.TB, c *pgx.Conn, query string, args ...any) T {
	t.Helper()
	var v T
	must(t, c.QueryRow(t.Context(), query, args...).Scan(&v))
	return v
}

func claimOf(id string) hookonce.Claim {
	return hookonce.Claim{
		Event: hookonce.Event{Key: hookonce.Key{Source: "orders", ID: id}, Type: "order.paid", Body: []byte("body"), ReceivedAt: time.Now()},
		Token: hookonce.NewToken(), TTL: time.Hour, Answer: hookonce.Answer{Status: 200, Body: "ok"},
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustClaim(t testing.TB, s *postgres.Store, c hookonce.Claim, want hookonce.Outcome) hookonce.Claimed {
	t.Helper()
	got, err := s.ClaimOne(t.Context(), c)
	if err != nil || got.Outcome != want {
		t.Fatalf("%s: outcome %v, err %v; want %v", c.Event.Key, got.Outcome, err, want)
	}
	return got
}

// pending reads all pages.
func pending(t testing.TB, s *postgres.Store) []hookonce.Entry {
	t.Helper()
	var all []hookonce.Entry
	after := hookonce.EntryID{}
	for {
		es, err := s.Pending(t.Context(), after, 1000)
		must(t, err)
		if len(es) == 0 {
			return all
		}
		all, after = append(all, es...), es[len(es)-1].ID
	}
}

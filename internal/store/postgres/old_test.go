package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/postgres"
)

const oldGuard = `create table webhook_event_locks (idempotency_key text, source text, received_at timestamptz, status text, primary key (source, idempotency_key));
	insert into webhook_event_locks values ('a', 'orders', '2026-01-02T03:04:05Z', 'completed'), ('b', 'orders', now(), 'processing'),
	('c', 'orders', now(), null), ('a', 'payments', now(), 'completed'), ('old-7', 'orders', now(), 'completed')`

// TestAdopt: what an older guard's table says is done is a duplicate, what it
// has begun is unknown, and what it does not know is new.
func TestAdopt(t *testing.T) {
	dsn := migrated(t)
	c, err := pgx.Connect(t.Context(), dsn)
	must(t, err)
	defer c.Close(t.Context())
	_, err = c.Exec(t.Context(), oldGuard)
	must(t, err)
	s := open(t, postgres.StoreOptions{DSN: dsn, Adopt: map[string]postgres.Adopt{"orders": {Table: "webhook_event_locks", Final: []string{"completed"}}}})
	must(t, s.CheckSchema(t.Context()))

	claim := claimOf("a")
	claim.Fingerprint = [16]byte{1}
	got := mustClaim(t, s, claim, hookonce.Duplicate)
	if want := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC); !got.FirstSeen.Equal(want) || got.First != claim.Answer || got.Fingerprint != claim.Fingerprint {
		t.Errorf("%+v", got)
	}
	previous := claimOf("new-7")
	previous.Previous = []hookonce.Key{{Source: "orders", ID: "old-7"}}
	mustClaim(t, s, previous, hookonce.Duplicate)
	for _, id := range []string{"b", "c"} {
		if _, err := s.ClaimOne(t.Context(), claimOf(id)); !errors.Is(err, hookonce.ErrUnknown) {
			t.Errorf("%s: %v, want unknown", id, err)
		}
	}
	// One batch of everything, in which each item keeps its own answer.
	other := claimOf("a")
	other.Event.Key.Source = "payments" // has no guard
	batch := []hookonce.Claim{claimOf("a"), claimOf("b"), claimOf("d"), other, claimOf("e\x00"), claimOf("a")}
	out, err := s.Claim(t.Context(), batch)
	must(t, err)
	for i, want := range []hookonce.Outcome{hookonce.Duplicate, 0, hookonce.New, hookonce.New, hookonce.New, hookonce.Duplicate} {
		if out[i].Outcome != want || (out[i].Err != nil) != (want == 0) {
			t.Errorf("item %d: %v, %v; want %v", i, out[i].Outcome, out[i].Err, want)
		}
	}
	mustClaim(t, s, claimOf("d"), hookonce.Duplicate)
	if n := len(pending(t, s)); n != 3 {
		t.Errorf("%d entries, want those of the 3 new events", n)
	}
	var rows int
	must(t, c.QueryRow(t.Context(), "select count(*) from webhook_event_locks").Scan(&rows))
	if rows != 5 {
		t.Errorf("the guard's table has %d rows", rows)
	}
}

// TestAdoptNothing: a table that is not there is told at start.
func TestAdoptNothing(t *testing.T) {
	s := open(t, postgres.StoreOptions{DSN: migrated(t), Adopt: map[string]postgres.Adopt{"orders": {Table: "none.such", Final: []string{"done"}}}})
	if err := s.CheckSchema(t.Context()); err == nil || !strings.Contains(err.Error(), "store.adopt") {
		t.Error(err)
	}
}

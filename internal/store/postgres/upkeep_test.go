package postgres_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/testenv"
)

func TestSchema(t *testing.T) {
	dsn := testenv.Postgres(t)
	s := open(t, postgres.StoreOptions{DSN: dsn, Schema: `odd "name`})
	if err := s.CheckSchema(t.Context()); !errors.Is(err, postgres.ErrSchema) || !strings.Contains(err.Error(), "hookonce migrate up") {
		t.Errorf("err = %v", err)
	}
	if _, err := s.ClaimOne(t.Context(), claimOf("a")); !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "hookonce migrate up") {
		t.Errorf("err = %v", err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := s.Migrate(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	must(t, s.CheckSchema(t.Context()))
	mustClaim(t, s, claimOf("a"), hookonce.New)
	exec(t, connect(t, dsn), `insert into "odd ""name".store_version (version) values (999)`)
	for _, err := range []error{s.CheckSchema(t.Context()), s.Migrate(t.Context())} {
		if !errors.Is(err, postgres.ErrSchema) || !strings.Contains(err.Error(), "newer") {
			t.Errorf("err = %v", err)
		}
	}
}

func TestLockView(t *testing.T) {
	dsn := migrated(t)
	s := open(t, postgres.StoreOptions{DSN: dsn})
	hashed := claimOf("hash~receipt")
	hashed.Lookup = &hookonce.Key{Source: "orders", ID: "hash"}
	for _, c := range []hookonce.Claim{claimOf("ação/1"), claimOf("a\x00b"), hashed} {
		mustClaim(t, s, c, hookonce.New)
	}
	must(t, s.Settle(t.Context(), pending(t, s)[:1]))
	c := connect(t, dsn)
	got := one[string](t, c, `select string_agg(idempotency_key || ' ' || source || ' ' || status, ', ' order by idempotency_key)
from hookonce.webhook_event_locks where received_at between now() - interval '1 minute' and now() + interval '1 second'`)
	if want := `a\000b orders processing, ação/1 orders completed, hash~receipt orders processing`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := c.Exec(t.Context(), "delete from hookonce.webhook_event_locks"); err == nil {
		t.Error("the view can be written to")
	}
}

func TestWarnings(t *testing.T) {
	dsn := migrated(t)
	s := open(t, postgres.StoreOptions{DSN: dsn})
	for _, w := range s.Warnings(t.Context()) {
		if !strings.Contains(w, "fsync") && !strings.Contains(w, "full_page_writes") { // a test server may run without
			t.Errorf("warning %q", w)
		}
	}
	s = open(t, postgres.StoreOptions{DSN: with(t, dsn, "synchronous_commit=off&default_transaction_isolation=serializable")})
	all := strings.Join(s.Warnings(t.Context()), "\n")
	for _, want := range []string{"synchronous_commit is off", "default_transaction_isolation is serializable"} {
		if !strings.Contains(all, want) {
			t.Errorf("warnings %q lack %q", all, want)
		}
	}
	mustClaim(t, s, claimOf("a"), hookonce.New)
	mustClaim(t, s, claimOf("a"), hookonce.Duplicate)
	must(t, s.Close())
	if w := s.Warnings(t.Context()); len(w) != 1 || !strings.Contains(w[0], "could not be read") {
		t.Errorf("warnings %q", w)
	}
}

func TestExpiredClaimsAreRemoved(t *testing.T) {
	dsn := migrated(t)
	now := time.Now()
	s := open(t, postgres.StoreOptions{DSN: dsn, Now: func() time.Time { return now }})
	const old = 2500 // more than two batches
	var cs []hookonce.Claim
	for i := range old {
		cs = append(cs, claimOf(fmt.Sprint(i)))
	}
	keep := claimOf("keep")
	keep.TTL = time.Hour + time.Millisecond
	_, err := s.Claim(t.Context(), append(cs, keep))
	must(t, err)
	if n, err := s.Maintain(t.Context()); n != 0 || err != nil {
		t.Fatalf("removed %d, %v", n, err)
	}
	now = now.Add(time.Hour)
	if n, err := s.Maintain(t.Context()); n != old || err != nil {
		t.Fatalf("removed %d, %v; want %d", n, err, old)
	}
	mustClaim(t, s, claimOf("keep"), hookonce.Duplicate)
	if n := len(pending(t, s)); n != old+1 {
		t.Errorf("%d entries, want %d: they are not the claim's", n, old+1)
	}
}

// TestForgottenInstances: their rows are gone, their entries are not.
func TestForgottenInstances(t *testing.T) {
	dsn := migrated(t)
	died, woke, other := open(t, postgres.StoreOptions{DSN: dsn}), open(t, postgres.StoreOptions{DSN: dsn}), open(t, postgres.StoreOptions{DSN: dsn})
	mustClaim(t, died, claimOf("a"), hookonce.New)
	must(t, died.Close())
	before := mustClaim(t, woke, claimOf("b"), hookonce.New)
	exec(t, connect(t, dsn), "delete from hookonce.instances")
	if _, err := woke.Adopt(t.Context(), 100); err != nil { // learns of it
		t.Fatal(err)
	}
	mustClaim(t, woke, claimOf("c"), hookonce.New)
	if es := pending(t, woke); len(es) != 1 || es[0].Event.Key.ID != "c" || es[0].ID.Lo <= before.Entry.Lo {
		t.Errorf("pending %+v, want c, with an id above %v", es, before.Entry)
	}
	if _, err := other.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := other.Adopt(t.Context(), 100); n != 2 || err != nil {
		t.Fatalf("adopted %d, %v; want a and b", n, err)
	}
	must(t, other.Settle(t.Context(), pending(t, other)))
	must(t, woke.Settle(t.Context(), pending(t, woke)))
	if st, err := other.Stats(t.Context()); err != nil || st.Events != 0 {
		t.Errorf("%d wait, %v", st.Events, err)
	}
}

func TestPagesAreBoundedInBytes(t *testing.T) {
	s := open(t, postgres.StoreOptions{DSN: migrated(t)})
	const large = 3 << 20
	for i := range 8 {
		c := claimOf(fmt.Sprint(i))
		c.Event.Body = bytes.Repeat([]byte{byte(i)}, large)
		mustClaim(t, s, c, hookonce.New)
	}
	page, err := s.Pending(t.Context(), hookonce.EntryID{}, 100)
	must(t, err)
	if len(page) != 3 {
		t.Errorf("%d entries of 3 MiB in a page, want 3", len(page))
	}
	if n := len(pending(t, s)); n != 8 {
		t.Errorf("%d entries in all pages, want 8", n)
	}
}

func TestUnreadableEntryStaysAndBlocksNobody(t *testing.T) {
	dsn := migrated(t)
	s := open(t, postgres.StoreOptions{DSN: dsn})
	mustClaim(t, s, claimOf("a"), hookonce.New)
	c := connect(t, dsn)
	exec(t, c, "update hookonce.outbox set event = 'garbage'")
	if es := pending(t, s); len(es) != 0 {
		t.Errorf("pending %+v", es)
	}
	mustClaim(t, s, claimOf("b"), hookonce.New)
	if es := pending(t, s); len(es) != 1 || es[0].Event.Key.ID != "b" {
		t.Errorf("pending %+v", es)
	}
	if n := one[int](t, c, "select count(*) from hookonce.outbox"); n != 2 {
		t.Errorf("%d entries in the table, want 2", n)
	}
}

// TestDuplicatesWriteNothing: no WAL, no dead rows.
func TestDuplicatesWriteNothing(t *testing.T) {
	server := testenv.StartPostgres(t) // of its own: WAL belongs to the whole server
	migrate(t, server.URL)
	s := open(t, postgres.StoreOptions{DSN: server.URL, Lease: time.Hour})
	var cs []hookonce.Claim
	for i := range 200 {
		cs = append(cs, claimOf(fmt.Sprint(i)))
	}
	again := func(want hookonce.Outcome) {
		t.Helper()
		for i := range cs {
			cs[i].Token = hookonce.NewToken()
		}
		out, err := s.Claim(t.Context(), cs)
		must(t, err)
		for _, got := range out {
			if got.Outcome != want {
				t.Fatalf("%v, %v; want %v", got.Outcome, got.Err, want)
			}
		}
	}
	again(hookonce.New)
	must(t, s.Settle(t.Context(), pending(t, s)))
	_, err := s.Stats(t.Context()) // what there is to save is saved
	must(t, err)
	c := connect(t, server.URL)
	again(hookonce.Duplicate) // sets hint bits
	exec(t, c, "checkpoint")
	before := one[string](t, c, "select pg_current_wal_insert_lsn()::text")
	for range 50 {
		again(hookonce.Duplicate)
	}
	if n := one[int64](t, c, "select (pg_current_wal_insert_lsn() - $1::pg_lsn)::bigint", before); n > 4096 {
		t.Errorf("10000 duplicates wrote %d bytes of WAL", n)
	}
}

func TestRecipes(t *testing.T) {
	s := open(t, postgres.StoreOptions{DSN: migrated(t)})
	for _, want := range []string{"", "one", "two"} {
		if want != "" {
			must(t, s.SetRecipe(t.Context(), "orders", want))
		}
		if got, err := s.Recipe(t.Context(), "orders"); got != want || err != nil {
			t.Errorf("recipe %q, %v; want %q", got, err, want)
		}
	}
}

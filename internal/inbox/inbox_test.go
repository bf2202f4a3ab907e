package inbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

const (
	lease = 15 * time.Second
	day   = 24 * time.Hour
	ttl   = 45 * day
	tries = 5 // maxCrashes
)

// clock is a time source that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// env is an inbox on a fresh database.
type env struct {
	*testing.T
	*inbox.Inbox
	clock   *clock
	db      *sql.DB
	dialect inbox.Dialect
}

// each runs a test on both databases.
func each(t *testing.T, fn func(e *env)) {
	t.Helper()
	t.Parallel() // they wait for disks more than they compute
	for _, d := range []inbox.Dialect{inbox.SQLite, inbox.Postgres} {
		t.Run(d.String(), func(t *testing.T) {
			t.Parallel()
			e := &env{T: t, clock: &clock{t: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC)}, dialect: d, db: open(t, d)}
			o := inbox.Options{Lease: lease, TTL: ttl, Now: e.clock.Now}
			if d.String() == "postgres" {
				o.Pipeline = postgres.Pipeline
			}
			e.Inbox = inbox.New(e.db, d, o)
			e.must(e.Migrate(t.Context()))
			fn(e)
		})
	}
}

func open(t *testing.T, d inbox.Dialect) *sql.DB {
	t.Helper()
	var db *sql.DB
	var err error
	if d.String() == "sqlite" {
		db, err = sqlite.OpenDB(t.Context(), filepath.Join(t.TempDir(), "inbox.db"))
	} else {
		db, err = postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{MaxConns: 16})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// table is a table's name in the dialect.
func (e *env) table(name string) string {
	if e.dialect.String() == "sqlite" {
		return "hookonce_" + name
	}
	return "hookonce." + name
}

func (e *env) count(table string) int {
	e.Helper()
	var n int
	e.must(e.db.QueryRowContext(e.Context(), "SELECT count(*) FROM "+e.table(table)).Scan(&n))
	return n
}

// event is a delivery received now.
func (e *env) event(id string) wire.Delivery {
	return wire.Delivery{Event: hookonce.Event{
		Key: hookonce.Key{Source: "shop", ID: id}, Type: "order.paid", ContentType: "application/json",
		Body: []byte(`{"order_id":"` + id + `"}`), ReceivedAt: e.clock.Now(),
	}}
}

// begin asks about one delivery of group g.
func (e *env) begin(d wire.Delivery) inbox.Verdict {
	e.Helper()
	vs, err := e.Begin(e.Context(), "g", []wire.Delivery{d}, tries)
	e.must(err)
	return vs[0]
}

// want checks a verdict's decision.
func (e *env) want(v inbox.Verdict, d inbox.Decision) inbox.Verdict {
	e.Helper()
	if v.Decision != d {
		e.Fatalf("decision %d, want %d (%+v)", v.Decision, d, v)
	}
	return v
}

// run begins a delivery that must run.
func (e *env) run(d wire.Delivery) inbox.Lease {
	e.Helper()
	return e.want(e.begin(d), inbox.Run).Lease
}

// bury makes a delivery's event a dead letter.
func (e *env) bury(d wire.Delivery) {
	e.Helper()
	e.must(e.Bury(e.Context(), e.run(d), inbox.Letter{Event: d.Event, Reason: inbox.Failed, Error: "boom"}))
}

// record is the event's record in group g.
func (e *env) record(d wire.Delivery) inbox.Record {
	e.Helper()
	rs, err := e.Event(e.Context(), d.Key)
	e.must(err)
	if len(rs) != 1 {
		e.Fatalf("%d records", len(rs))
	}
	return rs[0]
}

func generation(d wire.Delivery, n int) wire.Delivery {
	d.Generation = n
	return d
}

// apply carries out one work.
func (e *env) apply(w inbox.Work) inbox.Result {
	e.Helper()
	rs, err := e.Apply(e.Context(), []inbox.Work{w})
	e.must(err)
	return rs[0]
}

// step runs fn and records the step.
func (e *env) step(l inbox.Lease, s inbox.Step, last bool, fn func(context.Context, *sql.Tx) error) error {
	e.Helper()
	w := inbox.Work{Lease: l, Step: s, Last: last}
	if fn != nil {
		w.Tx = func(tx *sql.Tx) error { return fn(e.Context(), tx) }
	}
	return e.apply(w).Err
}

// mark records a step of which the effect is outside.
func (e *env) mark(l inbox.Lease, s inbox.Step) error {
	e.Helper()
	return e.apply(inbox.Work{Lease: l, Step: s}).Err
}

func (e *env) replayed(group string, d wire.Delivery, generation, run int) (bool, error) {
	oks, err := e.MarkReplayed(e.Context(), inbox.Replay{Group: group, Key: d.Key, Generation: generation, Run: run})
	return err == nil && oks[0], err
}

func (e *env) discard(group string, d wire.Delivery, reason string) (bool, error) {
	oks, err := e.Discard(e.Context(), reason, inbox.Target{Group: group, Key: d.Key})
	return err == nil && oks[0], err
}

func insertTicket(id string) func(context.Context, *sql.Tx) error {
	return func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO tickets (id) VALUES ($1)", id)
		return err
	}
}

func (e *env) tickets() {
	e.Helper()
	_, err := e.db.ExecContext(e.Context(), "CREATE TABLE tickets (id text)")
	e.must(err)
}

func (e *env) countTickets() int {
	e.Helper()
	var n int
	e.must(e.db.QueryRowContext(e.Context(), "SELECT count(*) FROM tickets").Scan(&n))
	return n
}

func ids(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("k%04d", i)
	}
	return out
}

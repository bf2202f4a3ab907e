package consumer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/internal/topic"
	"github.com/hookonce/hookonce/internal/wire"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

// world is a consumer on the embedded queue and an inbox, both real.
type world struct {
	t     *testing.T
	store *sqlite.Store
	inbox *inbox.Inbox
	db    *sql.DB
	cfg   consumer.Config
	stop  func() error

	consumer *consumer.Consumer
	postgres bool
}

type stepFunc = func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error

// newWorld has its inbox in SQLite.
func newWorld(t *testing.T, steps ...consumer.Step) *world {
	t.Helper()
	db, err := sqlite.OpenDB(t.Context(), filepath.Join(t.TempDir(), "inbox.db"))
	return newWorldOn(t, db, err, inbox.SQLite, inbox.Options{}, steps)
}

// bothInboxes runs a test with the inbox in SQLite and in Postgres.
func bothInboxes(t *testing.T, test func(t *testing.T, open func(steps ...consumer.Step) *world)) {
	t.Run("sqlite", func(t *testing.T) {
		test(t, func(steps ...consumer.Step) *world { return newWorld(t, steps...) })
	})
	t.Run("postgres", func(t *testing.T) {
		test(t, func(steps ...consumer.Step) *world {
			db, err := postgres.Open(t.Context(), testenv.Postgres(t), postgres.Options{MaxConns: 24})
			return newWorldOn(t, db, err, inbox.Postgres, inbox.Options{Pipeline: postgres.Pipeline}, steps)
		})
	})
}

func newWorldOn(t *testing.T, db *sql.DB, err error, dialect inbox.Dialect, o inbox.Options, steps []consumer.Step) *world {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	w := &world{t: t, db: db, postgres: dialect.String() == "postgres"}
	match := []topic.Pattern{mustPattern(t, "shop.order.#")}
	w.store, err = sqlite.Open(t.Context(), sqlite.Options{
		Path: filepath.Join(t.TempDir(), "hookonce.db"), Logger: quiet,
		Route: func(e hookonce.Event) []string {
			if match[0].Match(e.Topic()) {
				return []string{"tickets"}
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.store.Close() })
	o.Lease = 3 * time.Second
	w.inbox = inbox.New(w.db, dialect, o)
	if err := w.inbox.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.exec("create table tickets (order_id text)")
	w.cfg = consumer.Config{
		Queue: w.store, Inbox: w.inbox, Lease: 3 * time.Second, Logger: quiet,
		Groups: []consumer.Group{{
			Name: "tickets", Match: match, Steps: steps,
			Retry: consumer.RetryPolicy{MaxAttempts: 3, First: time.Millisecond, Max: 4 * time.Millisecond},
		}},
	}
	return w
}

func (w *world) start() {
	w.t.Helper()
	c, err := consumer.New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.consumer = c
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	w.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	w.t.Cleanup(func() { _ = w.stop() })
}

func (w *world) exec(query string, args ...any) {
	w.t.Helper()
	if _, err := w.db.ExecContext(w.t.Context(), query, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) send(id, typ string) hookonce.Key {
	w.t.Helper()
	key := hookonce.Key{Source: "shop", ID: id}
	e := hookonce.Event{Key: key, Type: typ, Body: []byte(`{}`), ReceivedAt: time.Now()}
	if err := w.store.Send(w.t.Context(), "", wire.Delivery{Event: e}); err != nil {
		w.t.Fatal(err)
	}
	return key
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline:
			w.t.Fatalf("%s: not within 20 s", what)
		case <-tick.C:
		}
	}
}

// record is the event's record in a group; the zero Record when there is none.
func (w *world) record(key hookonce.Key, group string) inbox.Record {
	w.t.Helper()
	rs, err := w.inbox.Event(w.t.Context(), key)
	if err != nil && !errors.Is(err, inbox.ErrNotFound) {
		w.t.Fatal(err)
	}
	for _, r := range rs {
		if r.Group == group {
			return r
		}
	}
	return inbox.Record{}
}

func (w *world) waitState(key hookonce.Key, group string, s inbox.State) inbox.Record {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is %s in %s", key, s, group), func() bool { return w.record(key, group).State == s })
	return w.record(key, group)
}

func (w *world) tickets(id string) (n int) {
	w.t.Helper()
	if err := w.db.QueryRowContext(w.t.Context(), "select count(*) from tickets where order_id = $1", id).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func insertTicket(ctx context.Context, tx *sql.Tx, e hookonce.Event) error {
	_, err := tx.ExecContext(ctx, "insert into tickets values ($1)", e.Key.ID)
	return err
}

func mustPattern(t *testing.T, text string) topic.Pattern {
	t.Helper()
	p, err := topic.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestADeliveryThatComesAgainHasNoSecondEffect(t *testing.T) {
	w := newWorld(t, consumer.Step{Name: "ticket", Tx: insertTicket})
	for range 20 {
		w.send("A-1", "order.paid")
	}
	w.start()
	key := hookonce.Key{Source: "shop", ID: "A-1"}
	w.waitState(key, "tickets", inbox.Done)
	w.send("A-1", "order.paid")
	w.waitState(w.send("A-2", "order.paid"), "tickets", inbox.Done)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if n := w.tickets("A-1"); n != 1 {
		t.Errorf("%d tickets", n)
	}
}

func TestARetryGoesOnBehindTheLastStepThatIsDone(t *testing.T) {
	var first, second atomic.Int32
	w := newWorld(t,
		consumer.Step{Name: "ticket", Tx: func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error {
			first.Add(1)
			return insertTicket(ctx, tx, e)
		}},
		consumer.Step{Name: "count", Tx: func(context.Context, *sql.Tx, hookonce.Event) error {
			if second.Add(1) < 3 {
				return errors.New("not yet")
			}
			return nil
		}},
	)
	key := w.send("A-1", "order.paid")
	w.start()
	r := w.waitState(key, "tickets", inbox.Done)
	if first.Load() != 1 || second.Load() != 3 || r.Attempts != 3 || w.tickets("A-1") != 1 {
		t.Errorf("steps ran %d and %d times, %d attempts, %d tickets", first.Load(), second.Load(), r.Attempts, w.tickets("A-1"))
	}
}

func TestFailuresBecomeDeadLettersByTheirKind(t *testing.T) {
	for name, c := range map[string]struct {
		fail     stepFunc
		reason   inbox.Reason
		attempts int
	}{
		"failed":    {func(context.Context, *sql.Tx, hookonce.Event) error { return errors.New("no") }, inbox.Failed, 3},
		"permanent": {func(context.Context, *sql.Tx, hookonce.Event) error { return consumer.Permanent(errors.New("no")) }, inbox.Permanent, 1},
		"panic":     {func(context.Context, *sql.Tx, hookonce.Event) error { panic("no") }, inbox.Failed, 3},
		"half written": {func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error {
			return errors.Join(insertTicket(ctx, tx, e), errors.New("no"))
		}, inbox.Failed, 3},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, consumer.Step{Name: "ticket", Tx: c.fail})
			key := w.send("A-1", "order.paid")
			w.start()
			w.waitState(key, "tickets", inbox.Dead)
			l, err := w.inbox.Letter(t.Context(), "tickets", key)
			if err != nil || l.Reason != c.reason || l.Attempts != c.attempts || l.Step != "ticket" {
				t.Errorf("letter %+v, %v; want %s after %d attempts", l, err, c.reason, c.attempts)
			}
			if n := w.tickets("A-1"); n != 0 {
				t.Errorf("%d tickets of an effect that failed", n)
			}
		})
	}
}

func TestShutdownGivesBackWhatItBreaksOff(t *testing.T) {
	begun := make(chan struct{}, 1)
	var runs atomic.Int32
	w := newWorld(t, consumer.Step{Name: "ticket", Tx: func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error {
		if runs.Add(1) == 1 {
			begun <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		return insertTicket(ctx, tx, e)
	}})
	w.cfg.DrainTimeout = 50 * time.Millisecond
	key := w.send("A-1", "order.paid")
	w.start()
	<-begun
	if err := w.stop(); err == nil {
		t.Error("Run did not say that something was broken off")
	}
	w.cfg.DrainTimeout = time.Second
	w.start()
	r := w.waitState(key, "tickets", inbox.Done)
	if r.Attempts != 1 || w.tickets("A-1") != 1 {
		t.Errorf("%d attempts, %d tickets; want the broken-off one not counted", r.Attempts, w.tickets("A-1"))
	}
}

func TestShutdownWaitsForWhatIsInWork(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	w := newWorld(t, consumer.Step{Name: "ticket", Tx: func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error {
		close(begun)
		<-goOn
		return insertTicket(ctx, tx, e)
	}})
	w.send("A-1", "order.paid")
	w.start()
	<-begun
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	select {
	case err := <-stopped:
		t.Fatalf("stopped while an effect was running: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(goOn)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if n := w.tickets("A-1"); n != 1 {
		t.Errorf("%d tickets", n)
	}
}

func TestWhatNoGroupWantsIsKeptAndSentOnceAGroupDoes(t *testing.T) {
	w := newWorld(t, consumer.Step{Name: "ticket", Tx: insertTicket})
	stray := w.send("S-1", "stock.changed")
	w.start()
	w.eventually("the stray event is kept", func() bool {
		l, err := w.inbox.Letter(t.Context(), queue.Unrouted, stray)
		return err == nil && l.Reason == inbox.Unrouted
	})
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	// A new release wants it: no operator has to do anything.
	w.cfg.Groups[0].Match = append(w.cfg.Groups[0].Match, mustPattern(t, "shop.stock.#"))
	w.cfg.Queue = routed{w.store, "tickets"}
	w.start()
	w.waitState(stray, "tickets", inbox.Done)
	if n := w.tickets("S-1"); n != 1 {
		t.Errorf("%d tickets", n)
	}
}

// routed is the store's queue with a route added, as a new release would have it.
type routed struct {
	*sqlite.Store
	group string
}

func (r routed) Send(ctx context.Context, group string, d wire.Delivery) error {
	if group == "" {
		group = r.group
	}
	return r.Store.Send(ctx, group, d)
}

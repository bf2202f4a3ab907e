package guarantee

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/testenv"
)

const stripeSecret, stripeOldSecret = "whsec_guarantee_new", "whsec_guarantee_old"

// parts of the configuration that both shapes have in common.
const (
	sources = `
sources:
  orders:
    provider: generic
    verify: none
    key: [ "header:X-Event-Id", "json:order.id" ]
    type: "json:event"
    respond: { status: 202, body: "queued" }
  shop:
    provider: generic
    verify: none
    key: [ "json:order.id" ]
    type: "json:event"
  whatsapp-in:
    provider: generic
    verify: none
    key: [ "json:message.id" ]
    type: "json:kind"
  stripe:
    provider: stripe
    secrets: [ "` + stripeSecret + `", "` + stripeOldSecret + `" ]
`
	consumers = `
consumers:
  tickets:
    match: [ "orders.#", "shop.#", "stripe.checkout.session.completed" ]
    retry: { max_attempts: 3, first: 1s, max: 4s }
    effects:
      - name: issue-ticket
        sql: insert into tickets (order_id, event) values (coalesce(:order_id, :stripe_order), :key)
        params: { order_id: "json:order.id", stripe_order: "json:data.object.client_reference_id", key: key }
  replies:
    match: [ "whatsapp-in.#" ]
    effects:
      - name: reply
        sql: insert into replies (message_id, event) values (:id, :key)
        params: { id: "json:message.id", key: key }
`
	tables = `
create table tickets (order_id text not null, event text not null);
create table replies (message_id text not null, event text not null);
`
)

// shape is a way to run the product, with its own servers and tables.
type shape struct {
	t     *testing.T
	name  string
	hooks string // base URL of the receiver
	admin string // base URL of the admin API
	db    *sql.DB

	receiver, consumer *process // the same process in the shape "one"
	redis, broker      *testenv.Server
	postgres           *testenv.Server // of a private shape
	amqp               string
}

// bothShapes runs a test on one process with SQLite, and on receiver and
// consumer apart with Redis, RabbitMQ and Postgres.
func bothShapes(t *testing.T, test func(t *testing.T, s *shape)) {
	t.Run("one", func(t *testing.T) { test(t, newOne(t)) })
	t.Run("split", func(t *testing.T) { test(t, newSplit(t, false)) })
}

// everyStore runs a test in the shape "one" and on each store of the shape "split".
func everyStore(t *testing.T, test func(t *testing.T, s *shape)) {
	bothShapes(t, test)
	for _, kind := range []string{"postgres", "hybrid"} {
		t.Run("split on "+kind, func(t *testing.T) { test(t, newSplitOn(t, kind, false)) })
	}
}

// addition is what a test adds to the configuration of its shape: entries of
// sources and consumers, tables, and files beside it.
type addition struct {
	sources, consumers, tables string
	files                      map[string]string
}

// config is the part of the configuration that both shapes have in common.
func (a addition) config() string { return sources + a.sources + consumers + a.consumers }

// newOne prepares one process on the embedded store; it is not started.
func newOne(t *testing.T) *shape { return newOneWith(t, addition{}) }

func newOneWith(t *testing.T, add addition) *shape {
	t.Parallel() // every shape has processes, ports and data of its own
	dir, hooks, admin := t.TempDir(), freeAddr(t), freeAddr(t)
	inbox := filepath.Join(dir, "shop.db")
	cfg := writeConfig(t, dir, fmt.Sprintf(`
data_dir: %s/data
receiver: { listen: %s }
admin: { listen: %s }
inbox: { kind: sqlite, sqlite: %s, lease: 3s }
store: { lease: 3s }
`, dir, hooks, admin, inbox)+add.config())
	writeFiles(t, dir, add.files)
	db, err := sqlite.OpenDB(t.Context(), inbox)
	if err != nil {
		t.Fatal(err)
	}
	s := &shape{t: t, name: "one", hooks: "http://" + hooks, admin: "http://" + admin, db: db}
	s.createTables(add.tables)
	s.receiver = newProcess(t, "hookonce", s.admin+"/readyz", "serve", "--config", cfg)
	s.consumer = s.receiver
	return s
}

// newSplit prepares receiver and consumer on real servers; they are not
// started. With private, the servers are this test's alone and can be killed.
func newSplit(t *testing.T, private bool) *shape { return newSplitOn(t, "redis", private) }

func newSplitOn(t *testing.T, store string, private bool) *shape {
	return newSplitWith(t, store, private, addition{})
}

func newSplitWith(t *testing.T, store string, private bool, add addition) *shape {
	t.Parallel()
	dir, hooks, admin, small := t.TempDir(), freeAddr(t), freeAddr(t), freeAddr(t)
	s := &shape{t: t, name: "split", hooks: "http://" + hooks, admin: "http://" + admin}
	s.redis = testenv.StartRedis(t)
	var dsn string
	if private {
		s.broker, s.postgres = testenv.StartRabbitMQ(t), testenv.StartPostgres(t)
		s.amqp, dsn = s.broker.URL, s.postgres.URL
	} else {
		s.amqp, dsn = testenv.RabbitMQ(t), testenv.Postgres(t)
	}
	cfg := writeConfig(t, dir, fmt.Sprintf(`
data_dir: %s/data
receiver: { listen: %s, admin_listen: %s }
admin: { listen: %s }
store: { kind: %s, redis: "%s", postgres: "%s", lease: 3s }
broker: { kind: rabbitmq, url: "%s" }
inbox: { kind: postgres, postgres: "%s", lease: 3s }
`, dir, hooks, small, admin, store, s.redis.URL, dsn, s.amqp, dsn)+add.config())
	writeFiles(t, dir, add.files)
	var err error
	if s.db, err = postgres.Open(t.Context(), dsn, postgres.Options{}); err != nil {
		t.Fatal(err)
	}
	s.createTables(add.tables)
	if out, code := command("migrate", "up", "--config", cfg); code != 0 {
		t.Fatalf("hookonce migrate up: exit %d\n%s", code, out)
	}
	s.receiver = newProcess(t, "receiver", "http://"+small+"/readyz", "--config", cfg)
	s.consumer = newProcess(t, "consumer", s.admin+"/readyz", "--config", cfg)
	return s
}

func writeConfig(t *testing.T, dir, text string) string {
	t.Helper()
	file := filepath.Join(dir, "hookonce.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *shape) createTables(more string) {
	s.t.Cleanup(func() { _ = s.db.Close() })
	if _, err := s.db.ExecContext(s.t.Context(), tables+more); err != nil {
		s.t.Fatal(err)
	}
}

// processes are the running programs, each once.
func (s *shape) processes() []*process {
	if s.receiver == s.consumer {
		return []*process{s.receiver}
	}
	return []*process{s.receiver, s.consumer}
}

func (s *shape) start() {
	s.t.Helper()
	for _, p := range s.processes() {
		p.start()
	}
}

// restart ends every process in good order and starts it again.
func (s *shape) restart() {
	s.t.Helper()
	for _, p := range s.processes() {
		p.term()
	}
	s.start()
}

// ints is the result of a query for one number.
func (s *shape) ints(query string, args ...any) (int, error) {
	var n int
	err := s.db.QueryRowContext(s.t.Context(), query, args...).Scan(&n)
	return n, err
}

// waitRows waits until a query for a number gives want.
func (s *shape) waitRows(limit time.Duration, want int, query string, args ...any) {
	s.t.Helper()
	within(s.t, limit, fmt.Sprintf("%s = %d", query, want), func() error {
		got, err := s.ints(query, args...)
		if err == nil && got != want {
			err = fmt.Errorf("is %d", got)
		}
		return err
	})
}

// settle makes sure that nothing is on its way any more: every process is
// drained and started again, and an event sent behind the others has arrived.
func (s *shape) settle() {
	s.t.Helper()
	s.restart()
	id := "settle-" + time.Now().Format("150405.000000")
	mustPost(s.t, s.hooks+"/hooks/orders", orderBody(id), nil)
	s.waitRows(30*time.Second, 1, "select count(*) from tickets where order_id = $1", id)
	if _, err := s.db.ExecContext(s.t.Context(), "delete from tickets where order_id = $1", id); err != nil {
		s.t.Fatal(err)
	}
}

// exactlyOnce wants one row for each order, and no other.
func (s *shape) exactlyOnce(orders int) {
	s.t.Helper()
	s.waitRows(90*time.Second, orders, "select count(distinct order_id) from tickets")
	s.settle()
	if rows, err := s.ints("select count(*) from tickets"); err != nil || rows != orders {
		s.t.Errorf("%d rows for %d orders, %v", rows, orders, err)
	}
}

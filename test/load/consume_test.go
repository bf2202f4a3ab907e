package load_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/app"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/wire"
)

// consumePrefetch is the prefetch of every row, the raw one's too.
const consumePrefetch = 1000

// consumption is one row of the consumers' table.
type consumption struct {
	name string
	set  setup
}

// consumptions are the rows; each is measured between two of the first.
func consumptions() []consumption {
	row := func(name, effect, store string) consumption {
		return consumption{name, setup{Kind: "consume", Store: store, Effect: effect, Broker: store != "sqlite"}}
	}
	return []consumption{
		{"raw consume + ack", setup{Kind: "consume-raw", Broker: true}},
		row("sql effect", "sql", "postgres"),
		row("sql effect, 100 hot rows", "hot", "postgres"),
		row("empty handler", "empty", "postgres"),
		row("outside effect that does nothing", "outside", "postgres"),
		row("Go handler with Delivery.Tx", "tx", "postgres"),
		row("sql effect, embedded SQLite", "sql", "sqlite"),
	}
}

// consumeTable measures how fast a full queue is worked off.
func consumeTable(ctx context.Context, w io.Writer, s *servers, rows []consumption, rounds, events int) error {
	rates, ratios, memory := map[string][]float64{}, map[string][]float64{}, map[string]float64{}
	raw := func() (float64, error) {
		rate, _, err := consumeOnce(ctx, s, rows[0].set, events)
		rates[rows[0].name] = append(rates[rows[0].name], rate)
		return rate, err
	}
	for round := range rounds {
		before, err := raw()
		if err != nil {
			return fmt.Errorf("%s: %w", rows[0].name, err)
		}
		for _, r := range rows[1:] {
			progress("round %d of %d: %s", round+1, rounds, r.name)
			rate, mem, err := consumeOnce(ctx, s, r.set, events)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			after, err := raw()
			if err != nil {
				return fmt.Errorf("%s: %w", rows[0].name, err)
			}
			rates[r.name] = append(rates[r.name], rate)
			ratios[r.name] = append(ratios[r.name], rate/((before+after)/2))
			memory[r.name] = max(memory[r.name], mem)
			before = after
		}
	}
	progress("")
	fmt.Fprintf(w, "a queue of %d events worked off at prefetch %d, medians of %d rounds\n\n", events, consumePrefetch, rounds)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "consumer\tevents/s\tof raw\tpeak memory")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%.0f MiB\n", r.name, median(rates[r.name]), median(append(ratios[r.name], nil...)), memory[r.name])
	}
	return t.Flush()
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 1
	}
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// consumeOnce fills a queue and lets a child work it off.
func consumeOnce(ctx context.Context, s *servers, set setup, events int) (rate, memory float64, err error) {
	if set, err = s.complete(set); err != nil {
		return 0, 0, err
	}
	set.Events = events
	c, err := startChild(ctx, set)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if *flagProfile != "" {
		if _, err := c.ask("profile " + profileFile(set.Kind+" "+set.Effect+" "+set.Store)); err != nil {
			return 0, 0, err
		}
	}
	seconds, err := c.number("work")
	if err != nil {
		return 0, 0, err
	}
	if *flagProfile != "" {
		if _, err := c.ask("endprofile"); err != nil {
			return 0, 0, err
		}
	}
	memory, err = c.number("memory")
	return float64(events) / seconds, memory, err
}

// fillQueue publishes distinct events to the group's queue.
func fillQueue(ctx context.Context, url string, events int) error {
	if err := dropQueues(url); err != nil {
		return err
	}
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // every confirm is in
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	_, err = ch.QueueDeclare("hookonce."+groupName, true, false, false, false,
		amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum, "x-delivery-limit": int32(2_000_000_000)})
	if err := errors.Join(err, ch.Confirm(false)); err != nil {
		return err
	}
	window := make(chan *amqp.DeferredConfirmation, 1000)
	failed := make(chan error, 1)
	go func() {
		for c := range window {
			if !c.Wait() {
				failed <- errors.New("not confirmed")
				return
			}
		}
		failed <- nil
	}()
	for n := range events {
		m := wire.Encode(wire.Delivery{Event: event(n)})
		c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", "hookonce."+groupName, true, false, amqp.Publishing{
			Headers: m.Headers, ContentType: m.ContentType, DeliveryMode: amqp.Persistent, MessageId: m.MessageID,
			Timestamp: m.Timestamp, Type: m.Type, AppId: m.AppID, Body: m.Body,
		})
		if err != nil {
			close(window)
			return err
		}
		window <- c
	}
	close(window)
	return <-failed
}

// serveConsumeRaw consumes and acks, 64 deliveries with one frame, and does nothing else.
func serveConsumeRaw(ctx context.Context, s *served, set setup) error {
	s.handler = http.NotFoundHandler()
	if err := fillQueue(ctx, set.AMQP, set.Events); err != nil {
		return err
	}
	s.commands["work"] = func(context.Context) (string, error) {
		conn, err := amqp.Dial(set.AMQP)
		if err != nil {
			return "", err
		}
		defer conn.Close() //nolint:errcheck // the acks are written
		ch, err := conn.Channel()
		if err != nil {
			return "", err
		}
		if err := ch.Qos(consumePrefetch, 0, false); err != nil {
			return "", err
		}
		in, err := ch.Consume("hookonce."+groupName, "", false, false, false, false, nil)
		if err != nil {
			return "", err
		}
		var began time.Time
		for n := range set.Events {
			d, ok := <-in
			if !ok {
				return "", errors.New("the broker ended the subscription")
			}
			if n == 0 {
				began = time.Now()
			}
			if n%64 == 63 || n == set.Events-1 {
				if err := d.Ack(true); err != nil {
					return "", err
				}
			}
		}
		return strconv.FormatFloat(time.Since(began).Seconds(), 'f', 6, 64), nil
	}
	return nil
}

// counted is a queue that knows when all events have been settled.
type counted struct {
	queue.Queue
	left  atomic.Int64
	first sync.Once
	began time.Time
	done  chan struct{}
}

func (q *counted) Subscribe(ctx context.Context, group string, prefetch int) (queue.Subscription, error) {
	sub, err := q.Queue.Subscribe(ctx, group, prefetch)
	if err != nil || group != groupName {
		return sub, err
	}
	return countedSubscription{sub, q}, nil
}

type countedSubscription struct {
	queue.Subscription
	q *counted
}

func (s countedSubscription) Ack(ctx context.Context, rs ...queue.Received) error {
	s.q.first.Do(func() { s.q.began = rs[0].At })
	err := s.Subscription.Ack(ctx, rs...)
	if err == nil && s.q.left.Add(-int64(len(rs))) == 0 {
		close(s.q.done)
	}
	return err
}

// serveConsume is the product's consumer.
func serveConsume(ctx context.Context, s *served, set setup) error {
	app.RaiseHeapFloor()
	s.handler = http.NotFoundHandler()
	in, err := openInbox(ctx, s, set)
	if err != nil {
		return err
	}
	group := effectGroup(set.Effect)
	group.Name, group.Prefetch, group.Concurrency = groupName, consumePrefetch, consumePrefetch
	q := &counted{done: make(chan struct{})}
	q.left.Store(int64(set.Events))
	work, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	s.onClose(func() error { stop(); wg.Wait(); return nil })
	if set.Store == "sqlite" {
		if q.Queue, err = embeddedQueue(ctx, s, set); err != nil {
			return err
		}
	} else {
		if err := fillQueue(ctx, set.AMQP, set.Events); err != nil {
			return err
		}
		cfg := rabbit.Config{URLs: []string{set.AMQP}, Groups: []rabbit.GroupTopology{{Name: groupName, Bindings: []string{"#"}}}}
		moves := rabbit.NewPublisher(cfg)
		rq := rabbit.NewQueue(cfg, moves)
		q.Queue = rq
		wg.Go(func() { _ = moves.Run(work) })
		wg.Go(func() { _ = rq.Run(work) })
	}
	c, err := consumer.New(consumer.Config{Groups: []consumer.Group{group}, Queue: q, Inbox: in, Logger: slog.Default()})
	if err != nil {
		return err
	}
	s.commands["work"] = func(context.Context) (string, error) {
		wg.Go(func() { _ = c.Run(work) })
		<-q.done
		return strconv.FormatFloat(time.Since(q.began).Seconds(), 'f', 6, 64), nil
	}
	return nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// openInbox opens an empty inbox beside the tables of the effects.
func openInbox(ctx context.Context, s *served, set setup) (*inbox.Inbox, error) {
	o := inbox.Options{Schema: "load_inbox"}
	dialect := inbox.SQLite
	var db *sql.DB
	var err error
	if set.Store == "sqlite" {
		db, err = sqlite.OpenDB(ctx, filepath.Join(set.Dir, "inbox.db"))
	} else {
		o.Pipeline, dialect = postgres.Pipeline, inbox.Postgres
		db, err = postgres.Open(ctx, set.Postgres, postgres.Options{MaxConns: 16})
	}
	if err != nil {
		return nil, err
	}
	s.onClose(db.Close)
	prepare := []string{
		"drop table if exists orders", "drop table if exists stock",
		"create table orders (id text not null, email text, event text not null)",
		"create table stock (product integer primary key, left_over integer not null)",
	}
	if set.Store != "sqlite" {
		prepare = append(prepare, "drop schema if exists load_inbox cascade")
	}
	for _, text := range prepare {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	for product := range 100 {
		if _, err := db.ExecContext(ctx, "insert into stock values ($1, 1000000)", product); err != nil {
			return nil, err
		}
	}
	in := inbox.New(db, dialect, o)
	return in, in.Migrate(ctx)
}

// embeddedQueue is an embedded store's queue, filled.
func embeddedQueue(ctx context.Context, s *served, set setup) (queue.Queue, error) {
	store, err := sqlite.Open(ctx, sqlite.Options{
		Path: filepath.Join(set.Dir, "hookonce.db"), MaxEvents: roomEvents, MaxBytes: roomBytes,
		Route: func(hookonce.Event) []string { return []string{groupName} },
	})
	if err != nil {
		return nil, err
	}
	s.onClose(store.Close)
	for n := 0; n < set.Events; {
		var claims []hookonce.Claim
		for ; len(claims) < 500 && n < set.Events; n++ {
			claims = append(claims, hookonce.Claim{
				Event: event(n), Token: hookonce.NewToken(), Answer: hookonce.Answer{Status: http.StatusOK}, TTL: time.Hour,
			})
		}
		if _, err := store.Claim(ctx, claims); err != nil {
			return nil, err
		}
	}
	return store, nil
}

const insertOrder = "insert into orders (id, email, event) values ($1, $2, $3)"

// effectGroup is what is done with each event: by a handler or by a step.
func effectGroup(name string) consumer.Group {
	order := func(e hookonce.Event) []any { return []any{e.Key.ID, "ana@example.com", e.Key.String()} }
	step := consumer.Step{Name: "effect"}
	switch name {
	case "empty":
		return consumer.Group{Handlers: []consumer.Route{
			consumer.HandleFunc("#", func(context.Context, *consumer.Delivery) error { return nil }),
		}}
	case "tx":
		return consumer.Group{Handlers: []consumer.Route{
			consumer.HandleFunc("#", func(ctx context.Context, d *consumer.Delivery) error {
				return d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, insertOrder, order(d.Event)...)
					return err
				})
			}),
		}}
	case "sql":
		step.Statements = func(e hookonce.Event) ([]consumer.Statement, error) {
			return []consumer.Statement{{Text: insertOrder, Args: order(e)}}, nil
		}
	case "hot":
		step.Statements = func(e hookonce.Event) ([]consumer.Statement, error) {
			digest := e.Key.Digest()
			return []consumer.Statement{{
				Text: "update stock set left_over = left_over - 1 where product = $1", Args: []any{int(digest[0]) % 100},
			}}, nil
		}
	case "outside":
		step.Do = func(context.Context, consumer.Try) error { return nil }
	}
	return consumer.Group{Match: []consumer.Pattern{must(consumer.ParsePattern("#"))}, Steps: []consumer.Step{step}}
}

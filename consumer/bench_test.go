package consumer_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/wire"
)

// memory is a queue that costs nothing: n events, as fast as they are taken.
type memory struct {
	queue.Queue
	c    chan queue.Received
	left sync.WaitGroup
}

func (m *memory) Subscribe(ctx context.Context, group string, _ int) (queue.Subscription, error) {
	if group != "g" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &memorySubscription{m: m}, nil
}

type memorySubscription struct {
	queue.Subscription
	m    *memory
	once sync.Once
}

func (s *memorySubscription) C() <-chan queue.Received { return s.m.c }
func (s *memorySubscription) Stop()                    { s.once.Do(func() { close(s.m.c) }) }
func (s *memorySubscription) Close() error             { return nil }
func (s *memorySubscription) Err() error               { return nil }

func (s *memorySubscription) Ack(_ context.Context, rs ...queue.Received) error {
	s.m.left.Add(-len(rs))
	return nil
}

// BenchmarkConsume is what the consumer itself costs an event, with a SQLite
// inbox on a real disk and a queue in memory.
func BenchmarkConsume(b *testing.B) {
	insert := func(e hookonce.Event) ([]consumer.Statement, error) {
		return []consumer.Statement{{Text: "insert into tickets values ($1)", Args: []any{e.Key.ID}}}, nil
	}
	for name, g := range map[string]consumer.Group{
		"statements": {Steps: []consumer.Step{{Name: "ticket", Statements: insert}}},
		"outside":    {Steps: []consumer.Step{{Name: "mail", Do: func(context.Context, consumer.Try) error { return nil }}}},
		"handler":    {Handlers: []consumer.Route{consumer.HandleFunc("#", func(context.Context, *consumer.Delivery) error { return nil })}},
	} {
		b.Run(name, func(b *testing.B) { benchmark(b, g) })
	}
}

func benchmark(b *testing.B, g consumer.Group) {
	db, err := sqlite.OpenDB(b.Context(), filepath.Join(b.TempDir(), "inbox.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // a temporary file
	in := inbox.New(db, inbox.SQLite, inbox.Options{})
	if err := in.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, err := db.ExecContext(b.Context(), "create table tickets (order_id text)"); err != nil {
		b.Fatal(err)
	}
	p, err := consumer.ParsePattern("#")
	if err != nil {
		b.Fatal(err)
	}
	g.Name, g.Match, g.Prefetch, g.Concurrency = "g", []consumer.Pattern{p}, 1000, 256
	m := &memory{c: make(chan queue.Received)}
	c, err := consumer.New(consumer.Config{
		Groups: []consumer.Group{g}, Queue: m, Inbox: in, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	events, run := 0, time.Now().UnixNano()
	b.ResetTimer()
	for b.Loop() {
		m.left.Add(1)
		m.c <- queue.Received{Delivery: wire.Delivery{Event: hookonce.Event{
			Key: hookonce.Key{Source: "s", ID: fmt.Sprint(run, "-", events)}, Type: "t", ReceivedAt: time.Now(),
		}}}
		events++
	}
	m.left.Wait()
	b.StopTimer()
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

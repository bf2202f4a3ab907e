package serve_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/consumer/serve"
	"github.com/hookonce/hookonce/internal/testenv"
)

// A Go program beside the shipped receiver: RabbitMQ, Postgres, one row an
// event.
func TestAProgramOfOnesOwnOnServers(t *testing.T) {
	group := fmt.Sprintf("own-%d", time.Now().UnixNano())
	source := group
	ctx, stop := context.WithCancel(t.Context())
	s, err := serve.Open(ctx, serve.Config{
		AMQP: []string{testenv.RabbitMQ(t)}, Postgres: testenv.Postgres(t), Migrate: true, Logger: slog.New(slog.DiscardHandler),
		Groups: []consumer.Group{{
			Name: group,
			Handlers: []consumer.Route{consumer.HandleFunc(source+".#", func(ctx context.Context, d *consumer.Delivery) error {
				return d.Tx(ctx, func(ctx context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, "insert into tickets values ($1)", d.Event.Key.ID)
					return err
				})
			})},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.DB().ExecContext(ctx, "create table tickets (id text)"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for i := range 60 {
		e := hookonce.Event{Key: hookonce.Key{Source: source, ID: fmt.Sprint(i % 50)}, Type: "order.paid", Body: []byte(`{}`)}
		if err := s.Publish(ctx, e); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := 0; n < 50; {
		if err := s.DB().QueryRowContext(ctx, "select count(*) from tickets").Scan(&n); err != nil {
			t.Fatal(err)
		}
		select {
		case <-deadline:
			t.Fatalf("%d tickets", n)
		case <-tick.C:
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var n int
	if err := s.DB().QueryRowContext(t.Context(), "select count(*) from tickets").Scan(&n); err != nil || n != 50 {
		t.Errorf("%d tickets, %v", n, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestAConfigurationThatCannotWorkIsRefused(t *testing.T) {
	handle := consumer.HandleFunc("shop.#", func(context.Context, *consumer.Delivery) error { return nil })
	for name, groups := range map[string][]consumer.Group{
		"no group":       nil,
		"nothing to do":  {{Name: "g"}},
		"no such":        {{Name: "g", Handlers: []consumer.Route{consumer.HandleFunc("shop.**", nil)}}},
		"the same twice": {{Name: "g", Handlers: []consumer.Route{handle}}, {Name: "g", Handlers: []consumer.Route{handle}}},
	} {
		s, err := serve.Open(t.Context(), serve.Config{Dir: t.TempDir(), Groups: groups, Logger: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Errorf("%s: opened", name)
			_ = s.Close()
		}
	}
	s, err := serve.Open(t.Context(), serve.Config{
		Dir: t.TempDir(), Groups: []consumer.Group{{Name: "g", Handlers: []consumer.Route{handle}}}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Publish(t.Context(), hookonce.Event{}); !errors.Is(err, hookonce.ErrBadKey) {
		t.Errorf("an event without a key: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

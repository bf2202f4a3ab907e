package load_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	amqp "github.com/rabbitmq/amqp091-go"
	goredis "github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/app"
	"github.com/hookonce/hookonce/internal/store/hybrid"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/redis"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/telemetry"
	"github.com/hookonce/hookonce/publisher"
	"github.com/hookonce/hookonce/receiver"
)

const (
	// instance is the same in all processes of a row, so that what one filled in
	// another may drain.
	instance = "load"
	// roomEvents and roomBytes are an outbox that never fills up here.
	roomEvents = 100_000_000
	roomBytes  = 100 << 30

	groupName = "load"
	schema    = "load"
)

// store is what the product needs of a store.
type store interface {
	receiver.Store
	publisher.Outbox
	publisher.Measurer
	Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error)
	Close() error
}

// openStore opens an empty store, or with setup.Keep one with what is in it.
func openStore(ctx context.Context, set setup, m *telemetry.Metrics) (store, error) {
	switch set.Store {
	case "redis":
		if err := prepareRedis(ctx, set); err != nil {
			return nil, err
		}
		return redis.Open(ctx, redis.Options{
			URL: set.Redis, Instance: instance, MaxEvents: roomEvents, MaxBytes: roomBytes, Metrics: m,
		})
	case "sqlite":
		return sqlite.Open(ctx, sqlite.Options{
			Path: filepath.Join(set.Dir, "hookonce.db"), MaxEvents: roomEvents, MaxBytes: roomBytes, Metrics: m,
		})
	case "postgres":
		return openPostgres(ctx, set, m)
	case "hybrid":
		return openHybrid(ctx, set, m)
	}
	return nil, fmt.Errorf("no store %q", set.Store)
}

func openHybrid(ctx context.Context, set setup, m *telemetry.Metrics) (store, error) {
	if err := prepareRedis(ctx, set); err != nil {
		return nil, err
	}
	marks, err := redis.OpenMarks(set.Redis)
	if err != nil {
		return nil, err
	}
	s, err := openPostgres(ctx, set, m)
	if err != nil {
		return nil, errors.Join(err, marks.Close())
	}
	return hybrid.New(hybrid.Options{Store: s, Marks: marks, Metrics: m}), nil
}

func openPostgres(ctx context.Context, set setup, m *telemetry.Metrics) (*postgres.Store, error) {
	if !set.Keep {
		conn, err := pgx.Connect(ctx, set.Postgres)
		if err != nil {
			return nil, err
		}
		_, err = conn.Exec(ctx, "drop schema if exists "+schema+" cascade")
		if err := errors.Join(err, conn.Close(ctx)); err != nil {
			return nil, err
		}
	}
	s, err := postgres.OpenStore(ctx, postgres.StoreOptions{
		DSN: set.Postgres, Schema: schema, Instance: instance, MaxEvents: roomEvents, MaxBytes: roomBytes, Metrics: m,
	})
	if err != nil {
		return nil, err
	}
	if err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepareRedis sets the row's fsync policy and empties the server.
func prepareRedis(ctx context.Context, set setup) error {
	o, err := goredis.ParseURL(set.Redis)
	if err != nil {
		return err
	}
	c := goredis.NewClient(o)
	defer c.Close() //nolint:errcheck // nothing is buffered
	err = errors.Join(
		c.ConfigSet(ctx, "appendfsync", set.Fsync).Err(),
		c.ConfigSet(ctx, "auto-aof-rewrite-percentage", "0").Err())
	if err != nil || set.Keep {
		return err
	}
	return c.FlushAll(ctx).Err()
}

// product is the shipped receiver, and with a broker the relay behind it.
type product struct {
	store   store
	relay   *publisher.Relay // nil without a broker
	metrics *telemetry.Metrics
}

func openProduct(ctx context.Context, s *served, set setup) (*product, error) {
	app.RaiseHeapFloor() // as the programs do
	p := &product{metrics: telemetry.NewMetrics(prometheus.NewRegistry())}
	var err error
	if p.store, err = openStore(ctx, set, p.metrics); err != nil {
		return nil, err
	}
	s.onClose(p.store.Close)
	if keeper, ok := p.store.(interface{ Run(ctx context.Context) }); ok {
		work, stop := context.WithCancel(ctx)
		var wg sync.WaitGroup
		wg.Go(func() { keeper.Run(work) })
		s.onClose(func() error { stop(); wg.Wait(); return nil })
	}
	if set.Broker {
		err = p.addBroker(ctx, s, set)
	}
	return p, err
}

// addBroker publishes what is claimed, to a group of which the messages stay in
// the queue.
func (p *product) addBroker(ctx context.Context, s *served, set setup) error {
	if err := dropQueues(set.AMQP); err != nil {
		return err
	}
	up := make(chan error, 16)
	pub := publisher.New(publisher.Config{
		URLs: []string{set.AMQP}, Metrics: p.metrics, Groups: []publisher.Group{{Name: groupName, Bindings: []string{sourceName + ".#"}}},
		OnState: func(_ bool, err error) {
			select {
			case up <- err:
			default:
			}
		},
	})
	p.relay = publisher.NewRelay(publisher.RelayConfig{Outbox: p.store, Sender: pub, Metrics: p.metrics})
	work, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = pub.Run(work) })
	s.onClose(func() error { stop(); wg.Wait(); return nil })
	if err := <-up; err != nil {
		return err
	}
	s.commands["relay"] = func(context.Context) (string, error) {
		wg.Go(func() { _ = p.relay.Run(work) })
		return "ok", nil
	}
	s.commands["empty"] = p.empty
	return nil
}

// empty waits until every event was confirmed and settled.
func (p *product) empty(ctx context.Context) (string, error) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if p.relay.Idle() {
			stats, err := p.store.Stats(ctx)
			if err != nil || stats.Events == 0 {
				return "ok", err
			}
		}
		<-tick.C
	}
}

// dropQueues forgets what an earlier row published.
func dropQueues(url string) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // all answers are in
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	for _, queue := range []string{"hookonce." + groupName, "hookonce.unrouted"} {
		if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
			return err
		}
	}
	return nil
}

// serveReceiver is the product.
func serveReceiver(ctx context.Context, s *served, set setup) error {
	p, err := openProduct(ctx, s, set)
	if err != nil {
		return err
	}
	cfg := receiver.Config{
		Sources: []receiver.Source{{
			Name: sourceName, Verify: receiver.Verify{Scheme: "hmac-sha256"}, Secrets: []string{secret},
			Type: receiver.TypeRule{From: "json:type"},
		}},
		Store: p.store, Metrics: p.metrics, Logger: slog.Default(),
	}
	if p.relay != nil {
		cfg.Relay = p.relay
		if _, err := s.commands["relay"](ctx); err != nil {
			return err
		}
	}
	rc, err := receiver.New(cfg)
	if err != nil {
		return err
	}
	s.handler = rc.Handler()
	return nil
}

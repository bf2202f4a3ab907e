// Package serve runs consumers in a program of your own:
//
//	err := serve.Run(ctx, serve.Config{
//		AMQP:     []string{"amqp://hookonce@rabbit/"},
//		Postgres: "postgres://hookonce@db/shop",
//		Groups: []consumer.Group{{
//			Name:     "tickets",
//			Handlers: []consumer.Route{consumer.Handle("stripe.checkout.session.completed", issueTicket)},
//		}},
//	})
//
// The receiver runs apart, as `hookonce receiver` or within another program.
// Without AMQP the queue is a file, for development and tests: what is
// published by [Service.Publish] is consumed in the same process.
package serve

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/telemetry"
	"github.com/hookonce/hookonce/internal/wire"
)

// Config is what a Service is made of.
type Config struct {
	// Groups are run side by side; at least one.
	Groups []consumer.Group

	// AMQP are the URLs of one RabbitMQ, tried in turn. Without one the queue is
	// the file hookonce.db in Dir.
	AMQP []string
	// Postgres is the DSN of the database that your own tables are in. Without
	// one it is the SQLite file at SQLite.
	Postgres string
	// Schema is where Hookonce's own tables are in Postgres. hookonce.
	Schema string
	// SQLite is the file of your own tables. inbox.db in Dir.
	SQLite string
	// Dir is the folder of the files. hookonce-data.
	Dir string
	// Migrate brings Hookonce's tables in Postgres to this version; without it
	// Open refuses older ones, and `hookonce migrate up` does it. SQLite files
	// are always migrated.
	Migrate bool

	// Lease is how long an event stays this process's without a sign of life. 15s.
	Lease time.Duration
	// TTL is how long done events are remembered. 45 days.
	TTL time.Duration
	// DrainTimeout is how long what is in work may go on once Run's context has
	// ended. 25s.
	DrainTimeout time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Registerer takes the metrics; nil means none.
	Registerer prometheus.Registerer
}

// Service is consumers with their queue and their inbox.
type Service struct {
	cfg      Config
	consumer *consumer.Consumer
	queue    queue.Queue
	db       *sql.DB
	stages   []func(ctx context.Context) error // needed by what the consumer has begun
	closers  []func() error
}

// Run opens a Service and runs it until ctx ends.
func Run(ctx context.Context, cfg Config) (err error) {
	s, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Run(ctx)
}

// Open opens the inbox and prepares the queue. RabbitMQ need not be there yet.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Dir == "" {
		cfg.Dir = "hookonce-data"
	}
	if cfg.SQLite == "" {
		cfg.SQLite = filepath.Join(cfg.Dir, "inbox.db")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &Service{cfg: cfg}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Service) open(ctx context.Context) error {
	metrics := telemetry.NewMetrics(s.cfg.Registerer)
	in, err := s.openInbox(ctx)
	if err != nil {
		return err
	}
	groups := make([]rabbit.GroupTopology, len(s.cfg.Groups))
	for i, g := range s.cfg.Groups {
		groups[i] = rabbit.GroupTopology{Name: g.Name, Bindings: g.Patterns()}
	}
	if len(s.cfg.AMQP) > 0 {
		cfg := rabbit.Config{
			URLs: s.cfg.AMQP, Name: "hookonce consumer", Topology: rabbit.Declare, Groups: groups, Logger: s.cfg.Logger, Metrics: metrics,
		}
		moves := rabbit.NewPublisher(cfg)
		q := rabbit.NewQueue(cfg, moves)
		s.queue, s.stages = q, append(s.stages, q.Run, moves.Run)
	} else if err := s.embed(ctx, metrics); err != nil {
		return err
	}
	s.consumer, err = consumer.New(consumer.Config{
		Groups: s.cfg.Groups, Queue: s.queue, Inbox: in, Lease: s.cfg.Lease, DrainTimeout: s.cfg.DrainTimeout,
		Logger: s.cfg.Logger, Metrics: metrics,
	})
	return err
}

func (s *Service) openInbox(ctx context.Context) (*inbox.Inbox, error) {
	o := inbox.Options{Schema: s.cfg.Schema, Lease: s.cfg.Lease, TTL: s.cfg.TTL}
	dialect := inbox.SQLite
	var err error
	if s.cfg.Postgres != "" {
		conns := 4
		for _, g := range s.cfg.Groups {
			conns += max(g.Concurrency, 16)
		}
		o.Pipeline, dialect = postgres.Pipeline, inbox.Postgres
		s.db, err = postgres.Open(ctx, s.cfg.Postgres, postgres.Options{MaxConns: min(conns, 64)})
	} else {
		s.db, err = sqlite.OpenDB(ctx, s.cfg.SQLite)
	}
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.db.Close)
	if s.cfg.Postgres == "" {
		lock, err := sqlite.Lock(s.cfg.SQLite, "")
		if err != nil {
			return nil, err
		}
		s.closers = append(s.closers, lock.Unlock)
	}
	in := inbox.New(s.db, dialect, o)
	if s.cfg.Migrate {
		return in, in.Migrate(ctx)
	}
	return in, in.CheckSchema(ctx)
}

// embed opens a queue in a file, which routes as the bindings of RabbitMQ do.
func (s *Service) embed(ctx context.Context, metrics *telemetry.Metrics) error {
	store, err := sqlite.Open(ctx, sqlite.Options{
		Path: filepath.Join(s.cfg.Dir, "hookonce.db"), Logger: s.cfg.Logger, Metrics: metrics,
		Route: consumer.Router(s.cfg.Groups),
	})
	if err != nil {
		return err
	}
	s.queue, s.closers = store, append(s.closers, store.Close)
	s.stages = append(s.stages, func(ctx context.Context) error { store.Run(ctx); return nil })
	return nil
}

// DB is the database of the inbox and of your own tables.
func (s *Service) DB() *sql.DB { return s.db }

// Publish sends an event to every group that wants it, durably, as a receiver
// would. An event of a key that was done before has no second effect.
func (s *Service) Publish(ctx context.Context, e hookonce.Event) error {
	if e.Key.Source == "" || e.Key.ID == "" {
		return fmt.Errorf("publish: %w", hookonce.ErrBadKey)
	}
	if e.ReceivedAt.IsZero() {
		e.ReceivedAt = time.Now()
	}
	return s.queue.Send(ctx, "", wire.Delivery{Event: e})
}

// Up says, by group, whether its events are being consumed now.
func (s *Service) Up() map[string]bool { return s.consumer.Up() }

// Run consumes until ctx ends, then drains; see [consumer.Consumer.Run]. It is
// called once.
func (s *Service) Run(ctx context.Context) error {
	upkeep, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	for _, stage := range s.stages {
		wg.Go(func() { _ = stage(upkeep) }) // they end with their context
	}
	err := s.consumer.Run(ctx)
	stop()
	wg.Wait()
	return err
}

// Close closes what Open has opened, once Run has ended.
func (s *Service) Close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	s.closers = nil
	return errors.Join(errs...)
}

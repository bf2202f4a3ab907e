package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/admin"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/publisher"
	"github.com/hookonce/hookonce/receiver"
)

// The roles. Each is the same composition with other parts left out.
func runServe(ctx context.Context, p *process) error    { return compose(ctx, p, true, true) }
func runReceiver(ctx context.Context, p *process) error { return compose(ctx, p, true, false) }
func runConsumer(ctx context.Context, p *process) error { return compose(ctx, p, false, true) }

// system is a running process's parts, those that its roles need.
type system struct {
	*process
	groups []consumer.Group
	keys   map[string][]string // how each source's keys are made
	health health

	store     claimStore
	relay     *publisher.Relay
	publisher *publisher.Publisher
	queue     queue.Queue
	inbox     *inbox.Inbox

	intake []stage // stopped first
	upkeep []stage // needed by what the intake has begun
}

// compose opens what the roles need, in the order in which a missing piece is
// best told, and runs it until ctx ends.
func compose(ctx context.Context, p *process, receives, consumes bool) error {
	s := &system{process: p}
	wanted := routes
	if consumes {
		wanted = groups
	}
	var err error
	if s.groups, err = wanted(p.cfg); err != nil {
		return err
	}
	if err := s.openStore(ctx, receives); err != nil {
		return err
	}
	s.openBroker(receives, consumes)
	if consumes {
		if err := s.addConsumer(ctx); err != nil {
			return err
		}
	}
	if receives {
		if err := s.addReceiver(ctx); err != nil {
			return err
		}
	}
	adminListener, err := s.adminStage(consumes)
	if err != nil {
		return err
	}
	s.announce(receives, consumes)
	stages := append(s.intake, s.upkeep...)
	return runStages(ctx, append(stages, adminListener)...)
}

func (s *system) embedded() bool { return s.cfg.Broker.Kind == config.Embedded }

// openStore opens the claim store of a receiver.
func (s *system) openStore(ctx context.Context, receives bool) error {
	if !receives {
		return nil
	}
	if s.cfg.Store.Kind == config.SQLite {
		var route []consumer.Group
		if s.embedded() {
			route = s.groups
		}
		store, err := s.openSQLite(ctx, route, adminURL(s.cfg))
		if err != nil {
			return err
		}
		s.store = store
		if s.embedded() {
			s.queue = store
		}
	} else {
		store, err := s.awaitStore(ctx, s.serverStore())
		if err != nil {
			return err
		}
		s.store = store
	}
	if u, ok := s.store.(upkeeper); ok {
		s.upkeep = append(s.upkeep, stage{"upkeep of the store", func(ctx context.Context) error { u.Run(ctx); return nil }})
	}
	for _, w := range s.store.Warnings(ctx) {
		s.log.Warn(w)
	}
	s.health.addUnless("store", s.worksWithoutStore, s.store.Ping)
	return nil
}

// openBroker prepares the connections to RabbitMQ. None of them is needed for a
// start: they are kept trying in their stages.
func (s *system) openBroker(receives, consumes bool) {
	if s.embedded() {
		return
	}
	if receives {
		s.publisher = publisher.New(s.rabbitConfig("hookonce receiver"))
		s.relay = publisher.NewRelay(publisher.RelayConfig{
			Outbox: s.store, Sender: s.publisher, Lease: s.cfg.Store.Lease,
			DrainTimeout: s.cfg.ShutdownTimeout / 2, Logger: s.log, Metrics: s.metrics,
		})
		s.upkeep = append(s.upkeep, stage{"relay", s.relay.Run}, stage{"publisher", s.publisher.Run})
		s.health.add("broker", false, s.brokerCheck)
		s.health.add("outbox", false, s.outboxCheck)
	}
	if consumes {
		cfg := s.rabbitConfig("hookonce consumer")
		moves := rabbit.NewPublisher(cfg)
		q := rabbit.NewQueue(cfg, moves)
		s.queue = q
		s.upkeep = append(s.upkeep, stage{"queue", q.Run}, stage{"publisher of the consumer", moves.Run})
	}
}

// worksWithoutStore reports whether events are accepted while the store is
// away. The process is then ready, though degraded.
func (s *system) worksWithoutStore() bool {
	return s.publisher != nil && s.publisher.Connected() && s.publishesWithoutStore()
}

func (s *system) brokerCheck(context.Context) error {
	switch {
	case !s.publisher.Connected():
		return errors.New("not connected; events wait in the outbox")
	case s.publisher.Blocked():
		return errors.New("the broker takes no messages (memory or disk alarm); events wait in the outbox")
	}
	return nil
}

func (s *system) outboxCheck(context.Context) error {
	if n := s.relay.SetAside(); n > 0 {
		return fmt.Errorf("%d events are set aside: the broker refuses them for what they are; see the log for their keys", n)
	}
	return nil
}

// addConsumer opens the inbox and runs the groups.
func (s *system) addConsumer(ctx context.Context) error {
	in, err := s.openInbox(ctx, true, adminURL(s.cfg))
	if err != nil {
		return err
	}
	s.inbox = in
	if q, ok := s.queue.(*rabbit.Queue); ok {
		if err := s.forgetPatterns(ctx, q); err != nil {
			return err
		}
	}
	s.health.add("inbox", true, in.DB().PingContext)
	c, err := consumer.New(consumer.Config{
		Groups: s.groups, Queue: s.queue, Inbox: in,
		Lease: s.cfg.Inbox.Lease, DrainTimeout: s.cfg.ShutdownTimeout,
		Logger: s.log, Metrics: s.metrics,
	})
	if err != nil {
		return err
	}
	s.intake = append(s.intake, stage{"consumer", c.Run})
	for name := range c.Up() {
		s.health.add("group "+name, name != queue.Unrouted, func(context.Context) error {
			if !c.Up()[name] {
				return errors.New("not consuming")
			}
			return nil
		})
	}
	return nil
}

// addReceiver opens the hooks listener.
func (s *system) addReceiver(ctx context.Context) error {
	cfg := receiver.Config{
		Sources: sources(s.cfg), Store: s.store,
		MaxBody: int64(s.cfg.Receiver.MaxBody), PublicURL: s.cfg.Receiver.PublicURL,
		TrustedProxies: s.cfg.Receiver.TrustedProxies,
		Logger:         s.log, Metrics: s.metrics,
	}
	if s.relay != nil {
		cfg.Relay, cfg.Confirmer, cfg.Publisher = s.relay, s.relay, s.publisher
	}
	r, err := receiver.New(cfg)
	if err != nil {
		return err
	}
	s.keys = r.Keys()
	if _, away := s.store.(*lateStore); !away {
		if err := s.checkRecipes(ctx, s.store); err != nil {
			return err
		}
	}
	l, err := s.listen(s.cfg.Receiver.Listen, "receiver.listen")
	if err != nil {
		return err
	}
	server := receiver.NewHTTPServer(s.cfg.Receiver.Listen, r.Handler(), s.log)
	s.intake = append([]stage{s.httpStage("hooks listener", l, server, s.cfg.Receiver.TLS)}, s.intake...)
	return nil
}

// adminStage opens the admin listener: the whole API where the consumer runs,
// health and metrics alone beside a receiver. It is stopped last, so that a
// process that drains can be watched.
func (s *system) adminStage(consumes bool) (stage, error) {
	metrics := promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{})
	addr, setting := s.cfg.Receiver.AdminListen, "receiver.admin_listen"
	handler := admin.Probes(s.health.checks, metrics)
	if consumes {
		addr, setting = s.cfg.Admin.Listen, "admin.listen"
		handler = admin.New(admin.Options{
			Inbox: s.inbox, Queue: s.queue, Groups: sortedKeys(s.cfg.Consumers), Health: s.health.checks, Metrics: metrics,
			Token: s.cfg.Admin.Token.Reveal(), Logger: s.log,
		}).Handler()
	}
	l, err := s.listen(addr, setting)
	if err != nil {
		return stage{}, err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelInfo),
	}
	return s.httpStage("admin listener", l, server, config.TLS{}), nil
}

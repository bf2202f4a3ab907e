package app

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/store/hybrid"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/redis"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/publisher"
	"github.com/hookonce/hookonce/receiver"
)

// claimStore is what a receiver's store has to offer.
type claimStore interface {
	receiver.Store
	publisher.Outbox
	publisher.Measurer
	recipeBook
	Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error)
	Ping(ctx context.Context) error
	Warnings(ctx context.Context) []string
	Close() error
}

// openRedis connects to the Redis store; it does not wait for it.
func (p *process) openRedis(ctx context.Context) (claimStore, error) {
	c := p.cfg.Store
	store, err := redis.Open(ctx, redis.Options{
		URL: c.Redis.Reveal(), Wait: c.RedisWait, Adopt: oldKeys(c.Adopt), Lease: c.Lease,
		MaxEvents: c.MaxOutbox, MaxBytes: int64(c.MaxOutboxBytes),
		Logger: p.log, Metrics: p.metrics,
	})
	if err != nil {
		return nil, err // and no *redis.Store that is nil in an interface that is not
	}
	return store, nil
}

// oldKeys is what older guards have left in Redis.
func oldKeys(c map[string]*config.Adopt) map[string]redis.Adopt {
	out := make(map[string]redis.Adopt, len(c))
	for source, a := range c {
		out[source] = redis.Adopt{Prefix: a.Prefix, Final: a.Final}
	}
	return out
}

// oldRows is what older guards have left in Postgres.
func oldRows(c map[string]*config.Adopt) map[string]postgres.Adopt {
	out := make(map[string]postgres.Adopt, len(c))
	for source, a := range c {
		out[source] = postgres.Adopt{Table: a.Table, Final: a.Final}
	}
	return out
}

// openPostgres opens the Postgres store; it does not wait for it.
func (p *process) openPostgres(ctx context.Context) (claimStore, error) {
	store, err := p.postgresStore(ctx)
	if err != nil {
		return nil, err
	}
	return store, nil
}

// postgresStore opens the store and refuses one behind this version's schema.
func (p *process) postgresStore(ctx context.Context) (*postgres.Store, error) {
	store, err := p.rawPostgresStore(ctx)
	if err != nil {
		return nil, err
	}
	if err := store.CheckSchema(ctx); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

func (p *process) rawPostgresStore(ctx context.Context) (*postgres.Store, error) {
	c := p.cfg.Store
	return postgres.OpenStore(ctx, postgres.StoreOptions{
		DSN: c.Postgres.Reveal(), Schema: c.Schema, Lease: c.Lease, Adopt: oldRows(c.Adopt),
		MaxEvents: c.MaxOutbox, MaxBytes: int64(c.MaxOutboxBytes),
		Logger: p.log, Metrics: p.metrics,
	})
}

// openHybrid opens the Postgres store with Redis in front; only Postgres has to
// be there.
func (p *process) openHybrid(ctx context.Context) (claimStore, error) {
	marks, err := redis.OpenMarks(p.cfg.Store.Redis.Reveal())
	if err != nil {
		return nil, err
	}
	store, err := p.postgresStore(ctx)
	if err != nil {
		return nil, errors.Join(err, marks.Close())
	}
	return hybrid.New(hybrid.Options{Store: store, Marks: marks, Logger: p.log, Metrics: p.metrics}), nil
}

// serverStore is how a store on servers is opened.
func (p *process) serverStore() opener {
	switch p.cfg.Store.Kind {
	case config.Postgres:
		return p.openPostgres
	case config.Hybrid:
		return p.openHybrid
	}
	return p.openRedis
}

// openSQLite opens the embedded store. With groups it delivers to them itself;
// with nil it has an outbox for a publisher. admin is told to whoever finds the
// file taken.
func (p *process) openSQLite(ctx context.Context, groups []consumer.Group, admin string) (*sqlite.Store, error) {
	o := sqlite.Options{
		Path: storePath(p.cfg), Admin: admin,
		MaxEvents: p.cfg.Store.MaxOutbox, MaxBytes: int64(p.cfg.Store.MaxOutboxBytes),
		Logger: p.log, Metrics: p.metrics,
	}
	if groups != nil {
		o.Route = consumer.Router(groups)
	}
	store, err := sqlite.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	p.onClose(store.Close)
	return store, nil
}

// storePath is the file of the embedded store.
func storePath(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "hookonce.db") }

// openInbox opens the consumers' database, waits for it and checks its schema.
// With lock, a SQLite file becomes this process's until it ends.
func (p *process) openInbox(ctx context.Context, lock bool, admin string) (*inbox.Inbox, error) {
	c := p.cfg.Inbox
	db, dialect, err := p.inboxDB(ctx, lock, admin)
	if err != nil {
		return nil, err
	}
	p.onClose(db.Close)
	o := inbox.Options{Schema: c.Schema, Lease: c.Lease, TTL: c.TTL}
	if c.Kind == config.Postgres {
		o.Pipeline = postgres.Pipeline
	}
	in := inbox.New(db, dialect, o)
	if err := p.await(ctx, "inbox", db.PingContext); err != nil {
		return nil, err
	}
	if err := in.CheckSchema(ctx); err != nil {
		return nil, err
	}
	return in, p.firstRunTable(ctx, db)
}

func (p *process) inboxDB(ctx context.Context, lock bool, admin string) (*sql.DB, inbox.Dialect, error) {
	c := p.cfg.Inbox
	if c.Kind == config.Postgres {
		db, err := postgres.Open(ctx, c.Postgres.Reveal(), postgres.Options{MaxConns: p.inboxConns()})
		return db, inbox.Postgres, err
	}
	db, err := sqlite.OpenDB(ctx, c.SQLite)
	if err != nil {
		return nil, inbox.SQLite, err
	}
	if lock {
		l, err := sqlite.Lock(c.SQLite, admin)
		if err != nil {
			return nil, inbox.SQLite, errors.Join(err, db.Close())
		}
		p.onClose(l.Unlock)
	}
	return db, inbox.SQLite, nil
}

// inboxConns is one connection for each event that can run, within reason, and
// a few for leases, upkeep and the admin API.
func (p *process) inboxConns() int {
	n := 4
	for _, g := range p.cfg.Consumers {
		n += g.Concurrency
	}
	return min(n, 64)
}

// firstRunTable makes the demo's table; every other table is the user's own.
func (p *process) firstRunTable(ctx context.Context, db *sql.DB) error {
	if !p.cfg.FirstRun {
		return nil
	}
	_, err := db.ExecContext(ctx, "create table if not exists tickets (order_id text, email text, key text, at timestamp)")
	if err != nil {
		return fmt.Errorf("the demo's table in %s: %w", p.cfg.Inbox.SQLite, err)
	}
	return nil
}

// rabbitConfig is how this process speaks to RabbitMQ.
func (p *process) rabbitConfig(name string) rabbit.Config {
	c := rabbit.Config{
		URLs: brokerURLs(p.cfg), Refresh: p.refreshedURLs, TLS: rabbit.TLS(p.cfg.Broker.TLS),
		Name: name, Topology: rabbit.Mode(p.cfg.Broker.Topology),
		Logger: p.log, Metrics: p.metrics,
	}
	for _, name := range sortedKeys(p.cfg.Consumers) {
		c.Groups = append(c.Groups, rabbit.GroupTopology{Name: name, Bindings: p.cfg.Consumers[name].Match})
	}
	return c
}

func brokerURLs(cfg *config.Config) []string {
	urls := make([]string, len(cfg.Broker.URL))
	for i, u := range cfg.Broker.URL {
		urls[i] = u.Reveal()
	}
	return urls
}

// refreshedURLs reads the broker's URLs anew, so that a password that was
// changed in its file is used from the next connection on. A configuration that
// does not load now keeps the URLs of the start.
func (p *process) refreshedURLs() []string {
	if p.reload == nil {
		return nil
	}
	cfg, err := p.reload()
	if err != nil {
		p.log.Warn("the configuration could not be read again; the broker URLs stay as they are", "err", err)
		return nil
	}
	return brokerURLs(cfg)
}

// pingTimeout bounds a health check.
const pingTimeout = 2 * time.Second

package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/batch"
	"github.com/hookonce/hookonce/internal/telemetry"
)

// Defaults of [StoreOptions].
const (
	DefaultSchema    = "hookonce"
	DefaultLease     = 10 * time.Second
	DefaultMaxEvents = 1_000_000
	DefaultMaxBytes  = 2 << 30
	DefaultStoreConn = 8
)

const (
	// claimWorkers is how many batches of claims may run at once; together
	// their commits share the server's fsync.
	claimWorkers = 4
	// opTimeout bounds each operation.
	opTimeout = 5 * time.Second
)

// StoreOptions configure a claim store. Only DSN is needed.
type StoreOptions struct {
	// DSN is a URL or key=value pairs, completed by the usual PG* environment;
	// see the package's documentation for PgBouncer and several hosts.
	DSN string
	// Schema holds the tables; "" means hookonce.
	Schema string
	// Instance names this process among those that share the database; it keeps
	// its outbox under it. Empty means a random name: what it leaves is adopted
	// by the others, or by itself when it is started again.
	Instance string
	// Lease is how long this instance's entries are its own after its last
	// claim or Adopt, by the server's clock; 0 means [DefaultLease].
	Lease time.Duration
	// MaxEvents and MaxBytes bound the outboxes of all instances together (in
	// encoded bytes): a claim beyond them is refused with ErrOutboxFull.
	// Within one instance the bound is exact. Of the others an instance knows
	// what they had when it last looked: near the bound before each batch,
	// else about twice a second. So together they may exceed it by the
	// batches that each has on its way: at most 4 of 256 events and 8 MiB.
	// 0 means [DefaultMaxEvents] and [DefaultMaxBytes].
	MaxEvents, MaxBytes int64
	// MaxConns bounds the connections that are open at once; 0 means
	// [DefaultStoreConn].
	MaxConns int
	// Adopt names, by source, what older guards have left in the same database.
	Adopt map[string]Adopt
	// Now is the clock for expiry; nil means time.Now. Leases follow the
	// server's clock.
	Now func() time.Time
	// Logger gets warnings; nil means slog.Default().
	Logger *slog.Logger
	// Metrics gets the claim times and whether the store is up; nil: nobody.
	Metrics *telemetry.Metrics
}

// Store is the claim store on Postgres. Its methods may be called from several
// goroutines.
//
// A claim and its outbox entry are written by one statement, which takes one
// round trip; claims that wait at the same moment share it (and its commit).
// Duplicates are answered by a second statement, which only reads: they cost
// neither WAL nor dead rows. Whatever ends without an answer (a lost
// connection, a timeout, a read-only server after a fail-over) is
// hookonce.ErrUnknown; repeat it with the same token.
type Store struct {
	o      StoreOptions
	pool   *pgxpool.Pool
	sql    statements
	old    []oldTable
	claims *batch.Batcher[*op, []hookonce.Claimed]
	books  books

	// lookFirst: most of the last batch were duplicates, so the next one is
	// read before anything is written.
	lookFirst atomic.Bool

	keeper    sync.WaitGroup
	nudges    chan struct{}
	stop      context.CancelFunc
	closeOnce sync.Once
}

// OpenStore connects to the database. It neither makes nor checks the tables:
// see [Store.Migrate] and [Store.CheckSchema]. It does not retry; its errors
// wrap hookonce.ErrUnknown unless the DSN is at fault, and never show the
// DSN's password.
func OpenStore(ctx context.Context, o StoreOptions) (*Store, error) {
	o = o.withDefaults()
	cfg, err := pgxpool.ParseConfig(o.DSN)
	if err != nil {
		return nil, ErrDSN
	}
	settings(cfg.ConnConfig, DefaultAppName)
	cfg.MaxConns = int32(min(o.MaxConns, 1000))
	cfg.MaxConnIdleTime, cfg.MaxConnLifetime = DefaultMaxIdleTime, DefaultMaxLifetime
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	s := &Store{o: o, pool: pool, sql: makeStatements(o.Schema), old: oldTables(o.Adopt), nudges: make(chan struct{}, 1)}
	if err := s.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	s.claims = batch.New(batch.Options{
		MaxItems: maxItems, MaxBytes: maxBytes, Workers: claimWorkers, Timeout: opTimeout,
	}, s.carryOut)
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.keeper.Go(func() { s.keep(work) })
	return s, nil
}

func (o StoreOptions) withDefaults() StoreOptions {
	if o.Schema == "" {
		o.Schema = DefaultSchema
	}
	if o.Instance == "" {
		o.Instance = fmt.Sprintf("%x", hookonce.NewToken())
	}
	if o.Lease <= 0 {
		o.Lease = DefaultLease
	}
	if o.MaxEvents <= 0 {
		o.MaxEvents = DefaultMaxEvents
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.MaxConns <= 0 {
		o.MaxConns = DefaultStoreConn
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Metrics == nil {
		o.Metrics = telemetry.NewMetrics(nil)
	}
	return o
}

// Ping tells whether the database answers; its error wraps hookonce.ErrUnknown.
func (s *Store) Ping(ctx context.Context) error {
	return s.unknown(s.pool.Ping(ctx))
}

// Close finishes the running claims, writes down what waits, and closes the
// connections. Entries stay; they are adopted when the lease has ended. It may
// be called more than once.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.claims.Close()
		s.stop()
		s.keeper.Wait()
		s.pool.Close()
	})
	return nil
}

// errClosed is what a closed pool's own error is replaced with.
var errClosed = errors.New("postgres store: closed")

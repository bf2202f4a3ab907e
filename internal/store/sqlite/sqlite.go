// Package sqlite is the embedded store: claims, the outbox and the queue of the
// one-process mode, in one SQLite file that needs nothing installed.
//
// The file belongs to one process, which holds the lock file beside it (see
// [Lock]); other processes may read. Every write goes through one connection,
// and the writes that wait at the same moment share one transaction, so that
// one fsync serves them all (journal_mode WAL, synchronous FULL: what was
// answered survives kill -9 and a power cut).
//
// A store works in one of two modes:
//
//   - With [Options].Route it is the embedded queue: a claim writes one queue
//     row for each consumer group in its own transaction, and the store is an
//     internal/queue.Queue. Nothing is ever in the outbox.
//   - Without Route it is a claim store with an outbox, for a publisher.
//
// Expired claims are free at once; [Store.Run] removes their rows.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/batch"
	"github.com/hookonce/hookonce/internal/telemetry"
)

// Defaults of [Options].
const (
	DefaultMaxEvents = 1_000_000
	DefaultMaxBytes  = 2 << 30
)

// Options configure a store. Only Path is needed.
type Options struct {
	// Path is the database file; it and its folder are made when missing, for
	// this user alone.
	Path string
	// Lock is the lock file when the caller holds it already. nil: Open takes
	// it, with Admin in it, and Close gives it back.
	Lock *FileLock
	// Admin is the URL of the admin API, for whoever finds the file locked.
	Admin string
	// Route names the groups that want an event; it makes the store the
	// embedded queue. An event that no group wants, or that the receiver
	// parked, gets one row of group "-". Called inside the write transaction:
	// it must be quick and must not call the store.
	Route func(hookonce.Event) []string
	// MaxEvents and MaxBytes bound what waits (outbox entries or queue rows, in
	// encoded bytes): a claim beyond them is refused with ErrOutboxFull.
	// 0 means [DefaultMaxEvents] and [DefaultMaxBytes].
	MaxEvents, MaxBytes int64
	// Now is the clock for expiry and due times; nil means time.Now.
	Now func() time.Time
	// Logger gets warnings; nil means slog.Default().
	Logger *slog.Logger
	// Metrics gets the claim times and whether the store is up; nil: nobody.
	Metrics *telemetry.Metrics
}

// Store is an open store. Its methods may be called from several goroutines.
type Store struct {
	o       Options
	lock    *FileLock
	ownLock bool
	db      *sql.DB // the one write connection
	reads   *sql.DB
	stmts   map[string]*sql.Stmt // prepared on db
	writer  *batch.Batcher[*op, []error]

	// Of the writer's goroutine alone: the last outbox id that was given, and
	// whether claims look before they write.
	lastEntry int64
	lookFirst bool

	// tags number the deliveries of all subscriptions, so that none can settle
	// what another was handed.
	tags atomic.Uint64

	mu     sync.Mutex
	groups map[string]*group
	closed bool
}

// Open opens the store, and makes or migrates its file. A file that another
// process owns gives a [*LockedError]; every error is one line that says what
// to do.
func Open(ctx context.Context, o Options) (*Store, error) {
	o = o.withDefaults()
	s := &Store{o: o, lock: o.Lock, groups: map[string]*group{}}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(explain(o.Path, err), s.release())
	}
	s.writer = batch.New(batch.Options{MaxItems: 256, MaxBytes: 8 << 20}, s.commit)
	if err := s.adoptOutbox(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (o Options) withDefaults() Options {
	if o.MaxEvents <= 0 {
		o.MaxEvents = DefaultMaxEvents
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
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

func (s *Store) open(ctx context.Context) error {
	path := s.o.Path
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if s.lock == nil {
		l, err := Lock(path, s.o.Admin)
		if err != nil {
			return err
		}
		s.lock, s.ownLock = l, true
	}
	// SQLite gives its -wal and -shm files the permissions of this one.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if s.db, err = openDB(ctx, path, writing); err != nil {
		return err
	}
	if err := migrate(ctx, s.db); err != nil {
		return err
	}
	if s.stmts, err = prepare(ctx, s.db); err != nil {
		return err
	}
	if err := s.db.QueryRowContext(ctx, sqlLastEntry).Scan(&s.lastEntry); err != nil {
		return err
	}
	s.reads, err = openDB(ctx, path, reading)
	return err
}

// Ping tells whether the store answers; its error wraps hookonce.ErrUnknown.
func (s *Store) Ping(ctx context.Context) error {
	var n int
	err := s.reads.QueryRowContext(ctx, "select events from hookonce_counters").Scan(&n)
	s.up(err)
	return s.unknown(err)
}

// Close ends all subscriptions, finishes the running transaction and closes
// the file. It may be called more than once.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.endSubscriptions()
	s.writer.Close()
	return s.release()
}

func (s *Store) release() error {
	var errs []error
	for _, stmt := range s.stmts {
		errs = append(errs, stmt.Close())
	}
	for _, db := range []*sql.DB{s.reads, s.db} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.ownLock {
		errs = append(errs, s.lock.Unlock())
	}
	return errors.Join(errs...)
}

// Warnings says, a line each, what an operator should know about this store;
// none is the ordinary case.
func (s *Store) Warnings(ctx context.Context) []string {
	if s.o.Route != nil {
		return nil
	}
	var n int64
	if err := s.reads.QueryRowContext(ctx, "select count(*) from hookonce_queue").Scan(&n); err != nil {
		return []string{fmt.Sprintf("%s: the embedded queue could not be read: %v", s.o.Path, err)}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d events wait in the embedded queue of an earlier configuration; they are kept, "+
		"but delivered only under broker.kind: embedded: run it once more until they are done", s.o.Path, n)}
}

func (s *Store) up(err error) {
	v := 1.0
	if err != nil {
		v = 0
	}
	s.o.Metrics.StoreUp.WithLabelValues("sqlite").Set(v)
}

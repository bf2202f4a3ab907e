// Package hybrid answers repeats from Redis and lets Postgres decide the rest.
//
//	store := hybrid.New(hybrid.Options{Store: postgresStore, Marks: redisMarks})
//
// Redis holds a mark for a key only once the broker has confirmed the key's
// event: then the event is in a queue, and a repeat is a duplicate whatever
// happens to either server. So a mark is true for as long as it exists, and a
// Redis that is slow, away, stale or empty costs speed only. Everything that
// has no mark, Postgres decides.
//
// A mark carries what a duplicate is answered with, and the owner's token, so
// that a claim repeated with its own token is still told that it is New. It
// ends with the claim.
//
// One thing makes marks untrue: a Postgres restored from a backup together with
// queues that were emptied. Delete the keys hookonce:mark:* then.
package hybrid

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/batch"
	"github.com/hookonce/hookonce/internal/telemetry"
	"github.com/hookonce/hookonce/publisher"
)

// Claims is the store that decides: internal/store/postgres.Store.
type Claims interface {
	Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error)
	ClaimOne(ctx context.Context, c hookonce.Claim) (hookonce.Claimed, error)
	publisher.Outbox
	publisher.Measurer
	Ping(ctx context.Context) error
	Warnings(ctx context.Context) []string
	Run(ctx context.Context)
	Recipe(ctx context.Context, source string) (string, error)
	SetRecipe(ctx context.Context, source, recipe string) error
	Close() error
}

// Marks is the cache of what is known to be done: internal/store/redis.Marks.
type Marks interface {
	// Get reads the values of keys; nil where there is none.
	Get(ctx context.Context, keys []hookonce.Key) ([][]byte, error)
	// Put writes values, each for its time to live.
	Put(ctx context.Context, keys []hookonce.Key, values [][]byte, ttls []time.Duration) error
	Ping(ctx context.Context) error
	Close() error
}

// Defaults of [Options].
const (
	DefaultTimeout  = 100 * time.Millisecond
	DefaultPause    = time.Second
	DefaultRemember = 200_000
)

// Options make a store. Store and Marks are needed; Close closes both.
type Options struct {
	Store Claims
	Marks Marks
	// Timeout bounds each look at the marks; 0 means [DefaultTimeout].
	Timeout time.Duration
	// Pause is how long the marks are left alone after a fault, so that a Redis
	// that is away does not hold up each claim; 0 means [DefaultPause].
	Pause time.Duration
	// Remember is how many claims are kept in memory until their entry is
	// settled, to mark them then. Those beyond it, the oldest first, get no
	// mark; 0 means [DefaultRemember].
	Remember int
	// Now is the clock for expiry; nil means time.Now.
	Now func() time.Time
	// Logger gets warnings; nil means slog.Default().
	Logger *slog.Logger
	// Metrics gets whether Redis is up; nil: nobody.
	Metrics *telemetry.Metrics
}

// Store is the composition. Its methods may be called from several goroutines.
// What it does not say here is [Options].Store's: Pending, Adopt, Stats, Ping,
// Run and the recipes.
type Store struct {
	Claims
	o     Options
	looks *batch.Batcher[*look, [][]byte]
	kept  memory
	until atomic.Int64 // no look before: unix ns
	down  atomic.Bool
	once  sync.Once
	err   error
}

// New makes a store of the two.
func New(o Options) *Store {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Pause <= 0 {
		o.Pause = DefaultPause
	}
	if o.Remember <= 0 {
		o.Remember = DefaultRemember
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
	s := &Store{Claims: o.Store, o: o, kept: memory{limit: o.Remember}}
	s.looks = batch.New(batch.Options{MaxItems: 256, Workers: 4, Timeout: o.Timeout}, s.get)
	return s
}

// Warnings is what the deciding store warns of, and whether Redis is away.
func (s *Store) Warnings(ctx context.Context) []string {
	out := s.Claims.Warnings(ctx)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if err := s.o.Marks.Ping(ctx); err != nil {
		out = append(out, "redis: not reachable ("+err.Error()+"): nothing is lost without it, but Postgres answers every repeat")
	}
	return out
}

// Close finishes the running claims and closes both stores. It may be called
// more than once.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.looks.Close()
		s.err = errors.Join(s.Claims.Close(), s.o.Marks.Close())
	})
	return s.err
}

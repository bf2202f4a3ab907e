// Package redis is the claim store on one Redis server: highest rate, lowest
// latency. A claim and its outbox entry are written by one Lua script, so that
// there is never one without the other; concurrent claims share a script call.
//
// # What is in Redis
//
//	idem:<source>:<key>          a claim (string, see value.go), expires with the claim
//	hookonce:outbox:<instance>   stream: one entry an event, field d = the encoded event
//	hookonce:instances           sorted set: instance by the end of its lease, ms
//	hookonce:counters            hash: events, bytes, and b:<instance> = its bytes
//
// Every instance has an outbox of its own. Each claim and each [Store.Adopt]
// renews the lease; when it has ended, another instance's Adopt takes the
// entries over. Streams are never trimmed.
//
// # What it promises
//
// As much as the server does: with appendfsync always nothing acknowledged is
// lost by kill -9. [Store.Warnings] says what a server's configuration may
// lose. A value under idem: that Hookonce did not write is neither new nor a
// duplicate: its state is unknown.
package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/batch"
	"github.com/hookonce/hookonce/internal/telemetry"
)

// Defaults of [Options].
const (
	DefaultLease     = 10 * time.Second
	DefaultMaxEvents = 1_000_000
	DefaultMaxBytes  = 512 << 20
)

// Options configure a store. Only URL is needed.
type Options struct {
	// URL is redis://[user:password@]host[:port][/database], or rediss:// for TLS.
	URL string
	// Instance names this process among those that share the server; it keeps
	// its outbox under it. Empty means a random name: what it leaves is adopted
	// by the others, or by itself when it is started again.
	Instance string
	// Lease is how long this instance's entries are its own after its last
	// claim or Adopt, by the server's clock; 0 means [DefaultLease].
	Lease time.Duration
	// MaxEvents and MaxBytes bound the outboxes of all instances together (in
	// encoded bytes): a claim beyond them is refused with ErrOutboxFull.
	// 0 means [DefaultMaxEvents] and [DefaultMaxBytes].
	MaxEvents, MaxBytes int64
	// Now is the clock for the time a claim was first seen; nil means time.Now.
	// Expiry and leases follow the server's clock.
	Now func() time.Time
	// Logger gets warnings; nil means slog.Default().
	Logger *slog.Logger
	// Metrics gets the claim times and whether the store is up; nil: nobody.
	Metrics *telemetry.Metrics
}

// Store is an open store. Its methods may be called from several goroutines.
type Store struct {
	o      Options
	client *redis.Client
	keys   names
	claims *batch.Batcher[*claiming, hookonce.Claimed]
	close  sync.Once
	closed error
}

// Open connects to the server and takes this instance's lease. It does not
// retry; its errors wrap hookonce.ErrUnknown unless the URL is at fault, and
// never show the URL's password.
func Open(ctx context.Context, o Options) (*Store, error) {
	ro, err := clientOptions(o.URL)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Store{o: o, client: redis.NewClient(ro), keys: names{instance: o.Instance}}
	if _, err := s.touch(ctx, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("redis %s: %w", ro.Addr, err), s.client.Close())
	}
	s.claims = batch.New(batch.Options{MaxItems: maxItems, MaxBytes: maxBytes, Workers: 4, Timeout: 2 * time.Second}, s.claimBatch)
	return s, nil
}

func (o Options) withDefaults() Options {
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

// quiet drops the client library's own log lines: faults are returned to us.
type quiet struct{}

// The library has one logger for the process, and may be setting up a
// connection in another goroutine at any later time.
func init() { redis.SetLogger(quiet{}) }

func (quiet) Printf(context.Context, string, ...any) {}

// errURL does not quote the URL: it may hold a password.
var errURL = errors.New("store.redis is not a Redis URL: want redis://[user:password@]host[:port][/database], or rediss:// for TLS")

func clientOptions(rawURL string) (*redis.Options, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errURL
	}
	switch u.Scheme {
	case "redis", "rediss":
	case "redis-sentinel", "redis-cluster":
		return nil, fmt.Errorf("store.redis: %s:// is not supported yet: use the URL of one server, redis:// or rediss://", u.Scheme)
	default:
		return nil, errURL
	}
	o, err := redis.ParseURL(rawURL)
	if err != nil {
		return nil, errURL
	}
	// A repeated command whose first answer was lost would turn a first
	// delivery into a duplicate of itself; and the caller has a budget.
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.ContextTimeoutEnabled = true
	o.DialTimeout = 2 * time.Second
	o.ReadTimeout, o.WriteTimeout = time.Second, time.Second
	o.PoolTimeout = time.Second
	o.PoolSize = 16
	// Commands that servers before 7.2, and Valkey, answer with errors.
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

// Ping tells whether the server answers; its error wraps hookonce.ErrUnknown.
func (s *Store) Ping(ctx context.Context) error {
	return s.unknown(s.client.Ping(ctx).Err())
}

// Close finishes the running claims and closes the connections. Entries stay;
// they are adopted when the lease has ended. It may be called more than once.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.claims.Close()
		s.closed = s.client.Close()
	})
	return s.closed
}

// unknown notes whether the server answered, and makes an error wrap
// hookonce.ErrUnknown.
func (s *Store) unknown(err error) error {
	if err == nil {
		s.o.Metrics.StoreUp.WithLabelValues("redis").Set(1)
		return nil
	}
	if !errors.Is(err, context.Canceled) {
		s.o.Metrics.StoreUp.WithLabelValues("redis").Set(0)
	}
	if hint := hint(err); hint != "" {
		return fmt.Errorf("%w: %s: %w", hookonce.ErrUnknown, hint, err)
	}
	return fmt.Errorf("%w: %w", hookonce.ErrUnknown, err)
}

// hint says what to do about an error of the server.
func hint(err error) string {
	if _, ok := errors.AsType[redis.Error](err); !ok {
		return ""
	}
	for prefix, text := range map[string]string{
		"OOM":       "Redis is out of memory: raise maxmemory (policy noeviction) or lower max_outbox_bytes",
		"MISCONF":   "Redis cannot save to its disk: see its log",
		"READONLY":  "this Redis is a replica: use the URL of its master",
		"NOAUTH":    "Redis wants a password: put it into the URL",
		"WRONGPASS": "Redis refuses the user or password of the URL",
		"NOPERM":    "this Redis user lacks a right: it needs @scripting, and read and write on idem:* and hookonce:*",
	} {
		if strings.HasPrefix(err.Error(), prefix) || strings.Contains(err.Error(), "-"+prefix+" ") {
			return text
		}
	}
	return ""
}

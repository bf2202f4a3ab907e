// Package redis is the claim store on one Redis server, on a master that
// Sentinel names, or on a Redis Cluster: highest rate, lowest latency. A claim
// and its outbox entry are written by one Lua script, so that there is never one
// without the other; concurrent claims share a script call.
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
// A cluster has all of that [Shards] times, with "{<shard>}:" behind the first
// colon: idem:{7}:orders:A-1, hookonce:{7}:outbox:<instance>. A key's shard is
// the 32-bit FNV-1a hash of <source>/<key>, modulo the number of shards. Leases,
// adoption and bounds are each shard's own. Between shards the outbox keeps the
// order of the nodes' clocks.
//
// # What it promises
//
// As much as the server does: with appendfsync always nothing acknowledged is
// lost by kill -9, and with [Options.Wait] nothing that so many replicas have is
// lost by a fail-over. [Store.Warnings] says what a server's configuration may
// lose. A value under idem: that Hookonce did not write is neither new nor a
// duplicate, unless [Options.Adopt] says what it means: its state is unknown.
//
// # Repeats
//
// Nothing is sent twice by itself. The client library's own retries are off;
// where a cluster's node, a restarted server or a new master answers that it has
// not carried out a command (MOVED, ASK, NOSCRIPT), and only there, the command
// goes on to the next place. Any other error leaves the state unknown, and the
// caller repeats the claim with its token: one that was made is New again, on
// whatever server it is found.
package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/batch"
	"github.com/hookonce/hookonce/internal/telemetry"
)

// Defaults of [Options].
const (
	DefaultLease     = 10 * time.Second
	DefaultMaxEvents = 1_000_000
	DefaultMaxBytes  = 512 << 20
	// DefaultWaitTimeout is far above what a healthy replica takes, and within
	// what senders wait for an answer.
	DefaultWaitTimeout = 500 * time.Millisecond
)

// Options configure a store. Only URL is needed.
type Options struct {
	// URL is one of, each with rediss in place of redis for TLS:
	//
	//	redis://[user:password@]host[:port][/database]
	//	redis-sentinel://[user:password@]host[:port],…/master[/database]
	//	redis-cluster://[user:password@]host[:port],…
	//
	// The hosts of a cluster are where it is first asked for its nodes. User and
	// password are those of the data servers; sentinels with passwords of their own
	// take them as parameters, ?sentinel_user=…&sentinel_password=…. With TLS,
	// ?tls_ca=FILE trusts a private authority alone, and &tls_cert=FILE&tls_key=FILE
	// show a certificate.
	URL string
	// Wait is how many replicas must have a claim before it is answered, New or
	// Duplicate; 0 waits for none. With fewer within WaitTimeout the state is
	// unknown, though the claim is made: repeat it with its token. Nothing
	// answered is lost when one of Wait replicas takes over; let Wait be as many as
	// may.
	Wait int
	// WaitTimeout bounds that; 0 means [DefaultWaitTimeout].
	WaitTimeout time.Duration
	// Adopt names, by source, what older guards have left in the same Redis.
	Adopt map[string]Adopt
	// Instance names this process among those that share the server; it keeps
	// its outbox under it. Empty means a random name: what it leaves is adopted
	// by the others, or by itself when it is started again.
	Instance string
	// Lease is how long this instance's entries are its own after its last
	// claim or Adopt, by the server's clock; 0 means [DefaultLease].
	Lease time.Duration
	// MaxEvents and MaxBytes bound the outboxes of all instances together (in
	// encoded bytes): a claim beyond them is refused with ErrOutboxFull. In a
	// cluster each of the [Shards] has its share, and an event above the share is
	// taken when its shard is empty.
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
	nodes  nodes
	keys   names
	claims *batch.Batcher[*claiming, hookonce.Claimed]
	close  sync.Once
	closed error
}

// Open connects to the server and takes this instance's lease. It does not
// retry; its errors wrap hookonce.ErrUnknown unless the URL is at fault, and
// never show the URL's password.
func Open(ctx context.Context, o Options) (*Store, error) {
	a, err := parseURL(o.URL)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	wait := time.Duration(0)
	if o.Wait > 0 {
		wait = o.WaitTimeout
	}
	s := &Store{o: o, nodes: a.connect(wait), keys: names{instance: o.Instance, shards: 1}}
	if a.kind == "cluster" {
		s.keys.shards = Shards
	}
	if _, err := s.touch(ctx, 0); err != nil {
		return nil, errors.Join(fmt.Errorf("redis %s: %w", strings.Join(a.hosts, ","), err), s.nodes.Close())
	}
	// One server does one thing at a time: while it works on a batch, one other is
	// made ready. Nodes of a cluster, and replicas that are waited for, work side by side.
	workers := 2
	if o.Wait > 0 || s.keys.shards > 1 {
		workers = 4
	}
	s.claims = batch.New(batch.Options{
		MaxItems: maxItems, MaxBytes: maxBytes, Workers: workers, Timeout: 2*time.Second + wait,
	}, s.claimBatch)
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
	if o.WaitTimeout <= 0 {
		o.WaitTimeout = DefaultWaitTimeout
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

// Ping tells whether the server answers, in a cluster every master; its error wraps hookonce.ErrUnknown.
func (s *Store) Ping(ctx context.Context) error {
	return s.unknown(s.nodes.each(ctx, func(ctx context.Context, c *redis.Client) error { return c.Ping(ctx).Err() }))
}

// Close finishes the running claims and closes the connections. Entries stay;
// they are adopted when the lease has ended. It may be called more than once.
func (s *Store) Close() error {
	s.close.Do(func() {
		s.claims.Close()
		s.closed = s.nodes.Close()
	})
	return s.closed
}

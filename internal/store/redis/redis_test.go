package redis_test

import (
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
	"github.com/hookonce/hookonce/internal/store/storetest"
	"github.com/hookonce/hookonce/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

func TestStore(t *testing.T) {
	t.Parallel()
	h := storetest.Harness{Instances: true, Foreign: true, Parallel: true, Lossy: true, Kill: true}
	h.New = func(t *testing.T) storetest.Backend {
		server := testenv.StartRedis(t)
		b := backend(redis.Options{URL: server.URL}, func(t *testing.T) goredis.Cmdable { return client(t, server.URL) }, false)
		b.Kill, b.Start = func(*testing.T) { server.Kill() }, func(*testing.T) { server.Start() }
		b.Lossy = func(t *testing.T, o storetest.Options) (storetest.Store, func(bool)) {
			u, err := url.Parse(server.URL)
			must(t, err)
			proxy := storetest.NewProxy(t, u.Host)
			u.Host = proxy.Addr
			return backend(redis.Options{URL: u.String()}, nil, false).Open(t, o), proxy.Lose
		}
		return b
	}
	storetest.Run(t, h)
}

// TestSentinel runs the suite with a replica that must have every claim.
func TestSentinel(t *testing.T) {
	t.Parallel()
	s := startSentinels(t)
	var db atomic.Int32
	h := storetest.Harness{Instances: true, Foreign: true, Parallel: true}
	h.New = func(t *testing.T) storetest.Backend {
		db := int(db.Add(1))
		master := func(t *testing.T) goredis.Cmdable { return client(t, fmt.Sprintf("%s/%d", s.master.url(), db)) }
		return backend(redis.Options{URL: s.url(db), Wait: 1, WaitTimeout: 5 * time.Second}, master, false)
	}
	t.Run("Suite", func(t *testing.T) { storetest.Run(t, h) })
	t.Run("Failover", func(t *testing.T) { sentinelFailover(t, s) })
}

// TestCluster runs the suite on a cluster that is emptied for each test.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	h := storetest.Harness{Instances: true, Foreign: true, Sharded: true}
	h.New = func(t *testing.T) storetest.Backend {
		c.flush(t)
		return backend(redis.Options{URL: c.url()}, func(*testing.T) goredis.Cmdable { return c.client() }, true)
	}
	t.Run("Suite", func(t *testing.T) { storetest.Run(t, h) })
	t.Run("Names", func(t *testing.T) { clusterNames(t, c) })
	t.Run("Adopt", func(t *testing.T) { c.flush(t); testAdopt(t, c.url(), c.client(), "webhook:") })
	t.Run("Rights", func(t *testing.T) { c.flush(t); work(t, open(t, redis.Options{URL: c.url(), Wait: 1})) })
	t.Run("WrongURL", func(t *testing.T) { clusterByWrongURL(t, c) })
	t.Run("PartlyDown", func(t *testing.T) { clusterPartlyDown(t, c) })
	t.Run("Moves", func(t *testing.T) { clusterMoves(t, c) })
	t.Run("Failover", func(t *testing.T) { clusterFailover(t, c) })
}

func backend(base redis.Options, server func(t *testing.T) goredis.Cmdable, cluster bool) storetest.Backend {
	return storetest.Backend{
		Open: func(t *testing.T, o storetest.Options) storetest.Store {
			ro := base
			ro.Instance, ro.Lease, ro.MaxEvents, ro.MaxBytes, ro.Now = o.Instance, o.Lease, o.MaxEvents, o.MaxBytes, o.Now
			return open(t, ro)
		},
		Foreign: func(t *testing.T, key hookonce.Key, kind string) {
			foreign(t, server(t), redis.ClaimName(key, cluster), kind)
		},
	}
}

func open(t testing.TB, o redis.Options) *redis.Store {
	t.Helper()
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := redis.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// client is a plain connection to the server, to prepare and to look.
func client(t *testing.T, url string) *goredis.Client {
	t.Helper()
	o, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() }) // only reads and writes of a test
	return c
}

func foreign(t *testing.T, c goredis.Cmdable, name, kind string) {
	t.Helper()
	var err error
	switch kind {
	case "text":
		err = c.Set(t.Context(), name, "processing", 0).Err()
	case "list":
		err = c.LPush(t.Context(), name, "x").Err()
	case "damaged": // ours, cut short
		err = c.Set(t.Context(), name, "hk1"+"0123456789abcdef"+"0123456789abcdef"+"\x00\x00", 0).Err()
	}
	if err != nil {
		t.Fatal(err)
	}
}

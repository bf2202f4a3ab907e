package hybrid_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/hybrid"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/store/redis"
	"github.com/hookonce/hookonce/internal/store/storetest"
	"github.com/hookonce/hookonce/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{Instances: true, Clock: true, Parallel: true, New: func(t *testing.T) storetest.Backend {
		dsn, url := migrated(t), testenv.Redis(t)
		return storetest.Backend{Open: func(t *testing.T, o storetest.Options) storetest.Store {
			s, _ := open(t, url, postgres.StoreOptions{
				DSN: dsn, Instance: o.Instance, Lease: o.Lease, MaxEvents: o.MaxEvents, MaxBytes: o.MaxBytes, Now: o.Now,
			}, hybrid.Options{Timeout: 5 * time.Second})
			return s
		}}
	}})
}

// counted counts the claims that reach the deciding store.
type counted struct {
	*postgres.Store
	n atomic.Int64
}

func (c *counted) ClaimOne(ctx context.Context, claim hookonce.Claim) (hookonce.Claimed, error) {
	c.n.Add(1)
	return c.Store.ClaimOne(ctx, claim)
}

func (c *counted) Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error) {
	c.n.Add(int64(len(claims)))
	return c.Store.Claim(ctx, claims)
}

func migrated(t *testing.T) string {
	t.Helper()
	dsn := testenv.Postgres(t)
	s, err := postgres.OpenStore(t.Context(), postgres.StoreOptions{DSN: dsn, MaxConns: 2})
	must(t, err)
	must(t, s.Migrate(t.Context()))
	must(t, s.Close())
	return dsn
}

func open(t *testing.T, url string, po postgres.StoreOptions, o hybrid.Options) (*hybrid.Store, *counted) {
	t.Helper()
	o.Logger, o.Now = slog.New(slog.DiscardHandler), po.Now
	po.Logger = o.Logger
	p, err := postgres.OpenStore(t.Context(), po)
	must(t, err)
	marks, err := redis.OpenMarks(url)
	must(t, err)
	c := &counted{Store: p}
	o.Store, o.Marks = c, marks
	s := hybrid.New(o)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func client(t *testing.T, url string) *goredis.Client {
	t.Helper()
	o, err := goredis.ParseURL(url)
	must(t, err)
	c := goredis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() }) // only reads and writes of a test
	return c
}

func claimOf(id string) hookonce.Claim {
	return hookonce.Claim{
		Event: hookonce.Event{Key: hookonce.Key{Source: "orders", ID: id}, Type: "order.paid", Body: []byte("body"), ReceivedAt: time.Now()},
		Token: hookonce.NewToken(), TTL: time.Hour, Answer: hookonce.Answer{Status: 201, Body: "ok " + id}, Fingerprint: [16]byte{7},
	}
}

func mustClaim(t *testing.T, s *hybrid.Store, c hookonce.Claim, want hookonce.Outcome) hookonce.Claimed {
	t.Helper()
	got, err := s.ClaimOne(t.Context(), c)
	if err != nil || got.Outcome != want {
		t.Fatalf("%s: outcome %v, err %v; want %v", c.Event.Key, got.Outcome, err, want)
	}
	return got
}

func settleAll(t *testing.T, s *hybrid.Store) {
	t.Helper()
	es, err := s.Pending(t.Context(), hookonce.EntryID{}, 1000)
	must(t, err)
	must(t, s.Settle(t.Context(), es))
}

func TestOnlySettledKeysAreMarked(t *testing.T) {
	url := testenv.Redis(t)
	s, pg := open(t, url, postgres.StoreOptions{DSN: migrated(t)}, hybrid.Options{Timeout: 5 * time.Second})
	c := client(t, url)
	first := claimOf("a")
	fresh := mustClaim(t, s, first, hookonce.New)
	mustClaim(t, s, claimOf("a"), hookonce.Duplicate)
	if n := c.DBSize(t.Context()).Val(); n != 0 || pg.n.Load() != 2 {
		t.Fatalf("%d marks, %d claims reached Postgres; want 0 and 2", n, pg.n.Load())
	}
	settleAll(t, s)
	dup := mustClaim(t, s, claimOf("a"), hookonce.Duplicate)
	if dup.First != first.Answer || dup.Fingerprint != first.Fingerprint || dup.Key != first.Event.Key || !dup.FirstSeen.Equal(fresh.FirstSeen) {
		t.Errorf("answered %+v", dup)
	}
	again := mustClaim(t, s, first, hookonce.New) // its own token
	if again.Entry != (hookonce.EntryID{}) || again.First != first.Answer {
		t.Errorf("answered %+v", again)
	}
	if n := pg.n.Load(); n != 2 {
		t.Errorf("%d claims reached Postgres, want 2: the rest is marked", n)
	}
	out, err := s.Claim(t.Context(), []hookonce.Claim{claimOf("a"), claimOf("b"), first, first})
	must(t, err)
	for i, want := range []hookonce.Outcome{hookonce.Duplicate, hookonce.New, hookonce.New, hookonce.Duplicate} {
		if out[i].Outcome != want {
			t.Errorf("%d: %v, %v; want %v", i, out[i].Outcome, out[i].Err, want)
		}
	}
	if ttl := c.PTTL(t.Context(), "hookonce:mark:orders/a").Val(); ttl <= 0 || ttl > time.Hour {
		t.Errorf("time to live %v", ttl)
	}
	bad := claimOf("a")
	bad.Answer.Status = 500
	if _, err := s.ClaimOne(t.Context(), bad); !errors.Is(err, hookonce.ErrInvalid) {
		t.Errorf("err = %v", err)
	}
}

// TestMarksEndWithTheClaim: for hashes of bodies the window is short.
func TestMarksEndWithTheClaim(t *testing.T) {
	now := time.Now()
	s, _ := open(t, testenv.Redis(t), postgres.StoreOptions{DSN: migrated(t), Now: func() time.Time { return now }}, hybrid.Options{Timeout: 5 * time.Second})
	hash := hookonce.Key{Source: "orders", ID: strings.Repeat("h", 400)}
	windowed := func(id string) hookonce.Claim {
		c := claimOf(id)
		c.Lookup, c.TTL = &hash, 10*time.Minute
		c.Previous = []hookonce.Key{{Source: "orders", ID: "old"}}
		return c
	}
	mustClaim(t, s, windowed("h~1"), hookonce.New)
	now = now.Add(9 * time.Minute) // settled late: only a minute is left
	settleAll(t, s)
	if dup := mustClaim(t, s, windowed("h~2"), hookonce.Duplicate); dup.Key.ID != "h~1" {
		t.Errorf("first key %v", dup.Key)
	}
	if dup := mustClaim(t, s, claimOf("old"), hookonce.Duplicate); dup.Key.ID != "h~1" {
		t.Errorf("first key %v", dup.Key)
	}
	mustClaim(t, s, claimOf("h~1"), hookonce.New) // the event's own key is free
	now = now.Add(time.Minute)
	mustClaim(t, s, windowed("h~3"), hookonce.New)
	now = now.Add(10 * time.Minute)
	settleAll(t, s) // too late for a mark
	mustClaim(t, s, windowed("h~4"), hookonce.New)
}

func TestForeignValuesAreNoMarks(t *testing.T) {
	url := testenv.Redis(t)
	s, _ := open(t, url, postgres.StoreOptions{DSN: migrated(t)}, hybrid.Options{Timeout: 5 * time.Second})
	c := client(t, url)
	must(t, c.Set(t.Context(), "hookonce:mark:orders/text", "processing", 0).Err())
	must(t, c.LPush(t.Context(), "hookonce:mark:orders/list", "x").Err())
	must(t, c.Set(t.Context(), "hookonce:mark:orders/short", "hm1", 0).Err())
	mustClaim(t, s, claimOf("other"), hookonce.New)
	settleAll(t, s)
	must(t, c.Copy(t.Context(), "hookonce:mark:orders/other", "hookonce:mark:orders/copy", 0, true).Err())
	for _, id := range []string{"text", "list", "short", "copy"} {
		mustClaim(t, s, claimOf(id), hookonce.New)
		mustClaim(t, s, claimOf(id), hookonce.Duplicate)
	}
}

// TestRedisCostsSpeedOnly: emptied, killed, frozen, and back.
func TestRedisCostsSpeedOnly(t *testing.T) {
	server := testenv.StartRedis(t)
	s, pg := open(t, server.URL, postgres.StoreOptions{DSN: migrated(t)}, hybrid.Options{Pause: 50 * time.Millisecond})
	c := client(t, server.URL)
	mustClaim(t, s, claimOf("a"), hookonce.New)
	settleAll(t, s)
	must(t, c.FlushAll(t.Context()).Err())
	mustClaim(t, s, claimOf("a"), hookonce.Duplicate)
	must(t, c.Do(t.Context(), "CLIENT", "PAUSE", "3000", "ALL").Err())
	start := time.Now()
	mustClaim(t, s, claimOf("b"), hookonce.New)
	if d := time.Since(start); d > 2*time.Second {
		t.Errorf("a frozen Redis held a claim up for %v", d)
	}
	server.Kill()
	mustClaim(t, s, claimOf("b"), hookonce.Duplicate)
	mustClaim(t, s, claimOf("c"), hookonce.New)
	settleAll(t, s)
	must(t, s.Ping(t.Context()))
	if w := s.Warnings(t.Context()); !strings.Contains(strings.Join(w, "\n"), "redis: not reachable") {
		t.Errorf("warnings %q", w)
	}
	server.Start()
	mustClaim(t, s, claimOf("d"), hookonce.New)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(60 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ { // until marks are used again
		id := strings.Repeat("e", i+1)
		mustClaim(t, s, claimOf(id), hookonce.New)
		settleAll(t, s)
		before := pg.n.Load()
		mustClaim(t, s, claimOf(id), hookonce.Duplicate)
		if pg.n.Load() == before {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("no mark was used within 20s of Redis's return")
		}
	}
}

// TestPostgresAwayIsUnknown: without a mark there is nobody to decide.
func TestPostgresAwayIsUnknown(t *testing.T) {
	server := testenv.StartPostgres(t)
	p, err := postgres.OpenStore(t.Context(), postgres.StoreOptions{DSN: server.URL, MaxConns: 2})
	must(t, err)
	must(t, p.Migrate(t.Context()))
	must(t, p.Close())
	s, _ := open(t, testenv.Redis(t), postgres.StoreOptions{DSN: server.URL}, hybrid.Options{Timeout: 5 * time.Second})
	mustClaim(t, s, claimOf("a"), hookonce.New)
	settleAll(t, s)
	server.Kill()
	mustClaim(t, s, claimOf("a"), hookonce.Duplicate) // marked
	b := claimOf("b")
	if _, err := s.ClaimOne(t.Context(), b); !errors.Is(err, hookonce.ErrUnknown) {
		t.Errorf("err = %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, hookonce.ErrUnknown) {
		t.Errorf("ping: %v", err)
	}
	server.Start()
	mustClaim(t, s, b, hookonce.New)
}

func TestRememberIsBounded(t *testing.T) {
	url := testenv.Redis(t)
	s, _ := open(t, url, postgres.StoreOptions{DSN: migrated(t)}, hybrid.Options{Remember: 2, Timeout: 5 * time.Second})
	for _, id := range []string{"a", "b", "c", "d"} {
		mustClaim(t, s, claimOf(id), hookonce.New)
	}
	settleAll(t, s)
	names, err := client(t, url).Keys(t.Context(), "*").Result()
	must(t, err)
	if len(names) != 2 {
		t.Errorf("marks %v, want those of c and d", names)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		mustClaim(t, s, claimOf(id), hookonce.Duplicate)
	}
}

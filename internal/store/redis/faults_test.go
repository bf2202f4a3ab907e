package redis_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
	"github.com/hookonce/hookonce/internal/testenv"
)

func claimOf(id string) hookonce.Claim {
	return hookonce.Claim{
		Event: hookonce.Event{Key: hookonce.Key{Source: "orders", ID: id}, Type: "order.paid", Body: []byte("body"), ReceivedAt: time.Now()},
		Token: hookonce.NewToken(), TTL: time.Hour, Answer: hookonce.Answer{Status: 200, Body: "ok"},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustClaim(t *testing.T, s *redis.Store, c hookonce.Claim, want hookonce.Outcome) hookonce.Claimed {
	t.Helper()
	got, err := s.ClaimOne(t.Context(), c)
	if err != nil || got.Outcome != want {
		t.Fatalf("%s: outcome %v, err %v; want %v", c.Event.Key, got.Outcome, err, want)
	}
	return got
}

func pending(t *testing.T, s *redis.Store) []hookonce.Entry {
	t.Helper()
	es, err := s.Pending(t.Context(), hookonce.EntryID{}, 1000)
	must(t, err)
	return es
}

func TestForgottenScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t) // of its own: the scripts belong to the whole server
	s := open(t, redis.Options{URL: server.URL})
	mustClaim(t, s, claimOf("a"), hookonce.New)
	must(t, client(t, server.URL).ScriptFlush(t.Context()).Err())
	mustClaim(t, s, claimOf("b"), hookonce.New)
	must(t, s.Settle(t.Context(), pending(t, s)))
	st, err := s.Stats(t.Context())
	if err != nil || st.Events != 0 || st.Bytes != 0 {
		t.Errorf("stats %+v, %v", st, err)
	}
}

func TestMemoryShortRefusesAndWritesNothing(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	c := client(t, server.URL)
	s := open(t, redis.Options{URL: server.URL})
	mustClaim(t, s, claimOf("a"), hookonce.New)
	must(t, c.ConfigSet(t.Context(), "maxmemory", "1mb").Err())
	_, err := s.ClaimOne(t.Context(), claimOf("b"))
	if !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "out of memory") {
		t.Fatalf("err = %v", err)
	}
	got, err := s.ClaimOne(t.Context(), claimOf("b")) // still not claimed
	if !errors.Is(err, hookonce.ErrUnknown) {
		t.Fatalf("%v, %v", got.Outcome, err)
	}
	must(t, s.Settle(t.Context(), pending(t, s))) // what frees memory still works
	must(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
	mustClaim(t, s, claimOf("b"), hookonce.New)
}

func TestReplicaIsNamed(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	s := open(t, redis.Options{URL: server.URL})
	must(t, client(t, server.URL).ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	if _, err := s.ClaimOne(t.Context(), claimOf("a")); !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "replica") {
		t.Errorf("err = %v", err)
	}
}

func TestPasswordIsNeverShown(t *testing.T) {
	for _, u := range []string{
		"redis://:s3cret@127.0.0.1:1/0", "redis://user:s3cret@[::1/0", "http://:s3cret@127.0.0.1", ":s3cret%zz@",
		"redis-cluster://:s3cret@127.0.0.1:7000", "redis://:s3cret@127.0.0.1:6379/notanumber", "redis://:s3cret@127.0.0.1:6379/0?nonsense=1",
		"redis-sentinel://u:s3cret@127.0.0.1:1,127.0.0.1:2", "redis-sentinel://u:s3cret@127.0.0.1:1/m?sentinel_password=s3cret",
		"redis://u:s3cret@127.0.0.1:1,127.0.0.1:2", "redis-cluster://u:s3cret@127.0.0.1:1/3", "redis-cluster://u:s3cret@127.0.0.1:1,,",
		"redis-replica://u:s3cret@127.0.0.1:1", "redis://u:s3cret@127.0.0.1:1?tls_ca=x", "rediss://u:s3cret@127.0.0.1:1?tls_ca=/none",
	} {
		_, err := redis.Open(t.Context(), redis.Options{URL: u})
		if err == nil || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n") {
			t.Errorf("err = %v", err)
		}
	}
}

// TestWrongKind: a URL of another kind of Redis is told which one it is.
func TestWrongKind(t *testing.T) {
	t.Parallel()
	single := startNode(t)
	for u, want := range map[string]string{
		"redis-cluster://" + single.addr():        "this Redis is no cluster",
		"redis-sentinel://" + single.addr():       "name of the master",
		"redis-sentinel://127.0.0.1:1/m":          "127.0.0.1:1",
		"redis-cluster://127.0.0.1:1":             "127.0.0.1:1",
		"redis-cluster://" + single.addr() + "/1": "database 0 only",
	} {
		_, err := redis.Open(t.Context(), redis.Options{URL: u})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", u, err, want)
		}
	}
}

func TestUnreachableServerIsToldFast(t *testing.T) {
	t.Parallel()
	start := time.Now()
	_, err := redis.Open(t.Context(), redis.Options{URL: "redis://127.0.0.1:1"})
	if !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "127.0.0.1:1") || time.Since(start) > 20*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	c := client(t, server.URL)
	s := open(t, redis.Options{URL: server.URL})
	if w := s.Warnings(t.Context()); len(w) != 0 {
		t.Fatalf("appendfsync always, noeviction: %q", w)
	}
	set := func(name, value string) { t.Helper(); must(t, c.ConfigSet(t.Context(), name, value).Err()) }
	want := func(texts ...string) {
		t.Helper()
		w := s.Warnings(t.Context())
		if len(w) != len(texts) {
			t.Fatalf("warnings %q, want %d", w, len(texts))
		}
		for i, text := range texts {
			if !strings.Contains(w[i], text) {
				t.Errorf("warning %q, want %q", w[i], text)
			}
		}
	}
	set("appendfsync", "everysec")
	want("everysec")
	set("appendfsync", "no")
	set("maxmemory-policy", "volatile-lru")
	want("appendfsync is no", "volatile-lru")
	set("appendonly", "no")
	want("appendonly is off", "volatile-lru")
	set("appendonly", "yes")
	set("maxmemory-policy", "noeviction")
	must(t, c.Do(t.Context(), "ACL", "SETUSER", "limited", "on", ">pw", "~*", "+@all", "-config").Err())
	u, err := url.Parse(server.URL)
	must(t, err)
	u.User = url.UserPassword("limited", "pw")
	s = open(t, redis.Options{URL: u.String()})
	want("appendfsync could not be read")
	must(t, c.Do(t.Context(), "ACL", "SETUSER", "limited", "-info").Err())
	want("appendonly could not be read", "maxmemory-policy could not be read")
}

func TestUnreadableEntryStaysAndBlocksNobody(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	c := client(t, server)
	s := open(t, redis.Options{URL: server, Instance: "one"})
	mustClaim(t, s, claimOf("a"), hookonce.New)
	must(t, c.Do(t.Context(), "XADD", "hookonce:outbox:one", "*", "d", "garbage").Err())
	mustClaim(t, s, claimOf("b"), hookonce.New)
	es, err := s.Pending(t.Context(), hookonce.EntryID{}, 2)
	must(t, err)
	if len(es) != 2 || es[1].Event.Key.ID != "b" {
		t.Errorf("pending %+v", es)
	}
	if n := c.XLen(t.Context(), "hookonce:outbox:one").Val(); n != 3 {
		t.Errorf("%d entries in the stream, want 3", n)
	}
}

// TestNamesInRedis pins what others rely on.
func TestNamesInRedis(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	c := client(t, server)
	s := open(t, redis.Options{URL: server, Instance: "one"})
	mustClaim(t, s, claimOf("A-1"), hookonce.New)
	long := strings.Repeat("x", 10<<10)
	mustClaim(t, s, claimOf(long), hookonce.New)
	short := hookonce.Key{Source: "orders", ID: long}.MessageID()
	names, err := c.Keys(t.Context(), "*").Result()
	must(t, err)
	want := map[string]bool{
		"idem:orders:A-1": true, "idem:orders:" + strings.TrimPrefix(short, "orders/"): true,
		"hookonce:outbox:one": true, "hookonce:instances": true, "hookonce:counters": true,
	}
	for _, name := range names {
		if !want[name] {
			t.Errorf("unexpected key %.80q", name)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("missing keys %v", want)
	}
	if ttl := c.PTTL(t.Context(), "idem:orders:A-1").Val(); ttl <= 0 || ttl > time.Hour {
		t.Errorf("time to live %v", ttl)
	}
}

// TestShortFormsAreNotTaken: a key may look like the short form of a long one.
func TestShortFormsAreNotTaken(t *testing.T) {
	t.Parallel()
	s := open(t, redis.Options{URL: testenv.Redis(t)})
	for i, order := range [][2]bool{{false, true}, {true, false}} {
		long := hookonce.Key{Source: "orders", ID: strings.Repeat(fmt.Sprint(i), 300)}
		twin := strings.TrimPrefix(long.MessageID(), "orders/")
		for n, isTwin := range order {
			id := long.ID
			if isTwin {
				id = twin
			}
			got, err := s.ClaimOne(t.Context(), claimOf(id))
			if n == 0 && (err != nil || got.Outcome != hookonce.New) {
				t.Errorf("first: %v, %v", got.Outcome, err)
			}
			if n == 1 && !errors.Is(err, hookonce.ErrUnknown) {
				t.Errorf("second: %v, %v; neither new nor a duplicate", got.Outcome, err)
			}
		}
	}
	long := claimOf(strings.Repeat("k", 300))
	long.Event.Key.Source = strings.Repeat("s", 300)
	mustClaim(t, s, long, hookonce.New)
	mustClaim(t, s, long, hookonce.New) // the same token
	long.Token = hookonce.NewToken()
	mustClaim(t, s, long, hookonce.Duplicate)
}

// TestWrongSizesHeal: an empty outbox has no bytes, whatever was counted.
func TestWrongSizesHeal(t *testing.T) {
	t.Parallel()
	s := open(t, redis.Options{URL: testenv.Redis(t)})
	for i := range 3 {
		mustClaim(t, s, claimOf(fmt.Sprint(i)), hookonce.New)
	}
	es := pending(t, s)
	for i := range es {
		es[i].Event = hookonce.Event{} // only the ids
	}
	must(t, s.Settle(t.Context(), es))
	st, err := s.Stats(t.Context())
	if err != nil || st.Events != 0 || st.Bytes != 0 {
		t.Errorf("stats %+v, %v", st, err)
	}
}

func BenchmarkClaimOne(b *testing.B) {
	s := open(b, redis.Options{URL: testenv.Redis(b), MaxEvents: 1 << 40, MaxBytes: 1 << 40})
	var n atomic.Int64
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.ClaimOne(b.Context(), claimOf(fmt.Sprint(n.Add(1)))); err != nil {
				b.Error(err)
			}
		}
	})
}

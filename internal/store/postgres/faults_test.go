package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/postgres"
	"github.com/hookonce/hookonce/internal/testenv"
)

// lossy is a proxy that drops the answers, and then the connection, while lose
// is set.
type lossy struct {
	net.Listener
	lose atomic.Bool
	wg   sync.WaitGroup
}

func newLossy(t *testing.T, upstream string) (*lossy, string) {
	t.Helper()
	u, err := url.Parse(upstream)
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p, server := &lossy{Listener: l}, u.Host
	p.wg.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", server)
			if err != nil {
				_ = down.Close()
				continue
			}
			p.wg.Go(func() { _, _ = io.Copy(up, down); _ = up.Close() })
			p.wg.Go(func() { p.answers(down, up) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); p.wg.Wait() })
	u.Host = l.Addr().String()
	return p, u.String()
}

func (p *lossy) answers(down, up net.Conn) {
	defer down.Close() //nolint:errcheck // a proxy
	buf := make([]byte, 64<<10)
	for {
		n, err := up.Read(buf)
		if err != nil || p.lose.Load() {
			return
		}
		if _, err := down.Write(buf[:n]); err != nil {
			return
		}
	}
}

// TestLostAnswerIsUnknownAndThenNew: the claim was made, its answer never came.
func TestLostAnswerIsUnknownAndThenNew(t *testing.T) {
	proxy, through := newLossy(t, migrated(t))
	s := open(t, postgres.StoreOptions{DSN: through})
	t.Cleanup(func() { must(t, s.Close()) }) // before the proxy waits for its connections
	c := claimOf("a")
	mustClaim(t, s, claimOf("warm up"), hookonce.New)
	proxy.lose.Store(true)
	if _, err := s.ClaimOne(t.Context(), c); !errors.Is(err, hookonce.ErrUnknown) {
		t.Fatalf("err = %v, want unknown", err)
	}
	proxy.lose.Store(false)
	got := mustClaim(t, s, c, hookonce.New)
	es := pending(t, s)
	if len(es) != 2 || es[1].ID != got.Entry {
		t.Errorf("%d entries, claim says %v", len(es), got.Entry)
	}
	mustClaim(t, s, claimOf("a"), hookonce.Duplicate)
	if st, err := s.Stats(t.Context()); err != nil || st.Events != 2 {
		t.Errorf("counted %d, %v; there are 2", st.Events, err)
	}
}

// load claims from 8 goroutines until the store fails, and says what was
// answered New and what has no answer. It returns once n are claimed.
type load struct {
	mu                sync.Mutex
	accepted, unknown map[string]hookonce.Claim
	wg                sync.WaitGroup
}

func startLoad(t *testing.T, s *postgres.Store, n int) *load {
	t.Helper()
	l := &load{accepted: map[string]hookonce.Claim{}, unknown: map[string]hookonce.Claim{}}
	enough := make(chan struct{})
	var once sync.Once
	for w := range 8 {
		l.wg.Go(func() {
			for i := 0; ; i++ {
				c := claimOf(fmt.Sprintf("%d-%d", w, i))
				got, err := s.ClaimOne(t.Context(), c)
				l.mu.Lock()
				switch {
				case errors.Is(err, hookonce.ErrUnknown):
					l.unknown[c.Event.Key.ID] = c
				case err != nil || got.Outcome != hookonce.New:
					t.Errorf("claim: %v, %v", got.Outcome, err)
				default:
					l.accepted[c.Event.Key.ID] = c
				}
				if len(l.accepted) > n || err != nil {
					once.Do(func() { close(enough) })
				}
				l.mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	<-enough
	return l
}

func TestKilledServerKeepsWhatWasAnswered(t *testing.T) {
	server := testenv.StartPostgres(t)
	migrate(t, server.URL)
	s := open(t, postgres.StoreOptions{DSN: server.URL, Instance: "one"})
	l := startLoad(t, s, 300)
	server.Kill()
	l.wg.Wait()
	if err := s.Ping(t.Context()); !errors.Is(err, hookonce.ErrUnknown) {
		t.Errorf("ping of a dead server: %v", err)
	}
	server.Start()
	kept := map[string]bool{}
	for _, e := range pending(t, s) {
		kept[e.Event.Key.ID] = true
	}
	for id := range l.accepted {
		if !kept[id] {
			t.Errorf("%s was accepted and is lost", id)
		}
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Events != int64(len(kept)) {
		t.Errorf("counted %d, %v; there are %d", st.Events, err, len(kept))
	}
	if len(l.unknown) == 0 {
		t.Error("no claim was under way when the server was killed")
	}
	for id, c := range l.unknown {
		if got := mustClaim(t, s, c, hookonce.New); (got.Entry == hookonce.EntryID{}) {
			t.Errorf("%s has no entry", id)
		}
		mustClaim(t, s, claimOf(id), hookonce.Duplicate)
	}
	if n := len(pending(t, s)); n != len(l.accepted)+len(l.unknown) {
		t.Errorf("%d entries, want %d + %d", n, len(l.accepted), len(l.unknown))
	}
}

func TestReadOnlyServerIsUnknownAndThenFound(t *testing.T) {
	dsn := migrated(t)
	s := open(t, postgres.StoreOptions{DSN: dsn})
	mustClaim(t, s, claimOf("a"), hookonce.New)
	c := connect(t, dsn)
	name := one[string](t, c, "select current_database()")
	exec(t, c, "alter database "+name+" set default_transaction_read_only = on")
	exec(t, c, "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()", name)
	b := claimOf("b")
	var err error
	for range 20 { // the first ones find their connection gone
		if _, err = s.ClaimOne(t.Context(), b); err == nil || strings.Contains(err.Error(), "25006") {
			break
		}
	}
	if !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "target_session_attrs") {
		t.Fatalf("err = %v", err)
	}
	exec(t, c, "alter database "+name+" reset default_transaction_read_only")
	mustClaim(t, s, b, hookonce.New) // on a new connection
	if n := len(pending(t, s)); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

// TestPoisonStandsAlone: a constraint of somebody's own refuses one item.
func TestPoisonStandsAlone(t *testing.T) {
	dsn := migrated(t)
	exec(t, connect(t, dsn), `alter table hookonce.claims add check (position('poison'::bytea in lookup) = 0)`)
	s := open(t, postgres.StoreOptions{DSN: dsn})
	var cs []hookonce.Claim
	for i := range 64 {
		cs = append(cs, claimOf(fmt.Sprint(i)))
	}
	cs[37] = claimOf("poison")
	cs = append(cs, claimOf("12")) // a repeat, in another half than its first
	out, err := s.Claim(t.Context(), cs)
	must(t, err)
	for i, got := range out {
		switch {
		case i == 37:
			if !errors.Is(got.Err, hookonce.ErrInvalid) || got.Outcome != 0 {
				t.Errorf("poison: %v, %v", got.Outcome, got.Err)
			}
		case i == 64:
			if got.Outcome != hookonce.Duplicate {
				t.Errorf("repeat: %v, %v", got.Outcome, got.Err)
			}
		case got.Outcome != hookonce.New:
			t.Errorf("%d: %v, %v", i, got.Outcome, got.Err)
		}
	}
	if n := len(pending(t, s)); n != 63 {
		t.Errorf("%d entries, want 63", n)
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Events != 63 {
		t.Errorf("counted %d, %v", st.Events, err)
	}
}

// TestDeadlockIsRetried: somebody else locks the keys in the opposite order.
func TestDeadlockIsRetried(t *testing.T) {
	dsn := migrated(t)
	s := open(t, postgres.StoreOptions{DSN: dsn})
	low, high := claimOf("a"), claimOf("b")
	if d, e := low.Event.Key.Digest(), high.Event.Key.Digest(); string(d[:]) > string(e[:]) {
		low, high = high, low
	}
	insert := func(c hookonce.Claim) string {
		return fmt.Sprintf(`insert into hookonce.claims values ('\x%x', '\x00', null, '\x00', '\x00', 0, 0, 200, '', 0, 0)`, c.Event.Key.Digest())
	}
	other, watch := connect(t, dsn), connect(t, dsn)
	exec(t, other, "set deadlock_timeout = '1min'") // so that the store is the one to give up
	exec(t, other, "begin")
	exec(t, other, insert(high))
	var out []hookonce.Claimed
	var claimed sync.WaitGroup
	claimed.Go(func() {
		var err error
		if out, err = s.Claim(t.Context(), []hookonce.Claim{low, high}); err != nil {
			t.Error(err)
		}
	})
	waitUntil(t, "the claim waits", func() bool {
		return one[int](t, watch, "select count(*) from pg_locks where not granted") > 0
	})
	exec(t, other, insert(low)) // returns once the store has given up
	exec(t, other, "rollback")
	claimed.Wait()
	for i, got := range out {
		if got.Outcome != hookonce.New {
			t.Errorf("%d: %v, %v", i, got.Outcome, got.Err)
		}
	}
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within 20s: %s", what)
		}
	}
}

// TestCallerThatLeavesLosesNothing: its claim goes on without it.
func TestCallerThatLeavesLosesNothing(t *testing.T) {
	dsn := migrated(t)
	s := open(t, postgres.StoreOptions{DSN: dsn})
	mustClaim(t, s, claimOf("warm up"), hookonce.New)
	locker := connect(t, dsn)
	exec(t, locker, "begin")
	exec(t, locker, "lock table hookonce.claims in access exclusive mode")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c := claimOf("a")
	if _, err := s.ClaimOne(ctx, c); !errors.Is(err, hookonce.ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("err = %v", err)
	}
	exec(t, locker, "commit")
	mustClaim(t, s, c, hookonce.New)
	if n := len(pending(t, s)); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

func TestPasswordIsNeverShown(t *testing.T) {
	for _, dsn := range []string{
		"postgres://u:s3cret@host:notaport/db", "postgres://u:s3cret@127.0.0.1:1/db?sslmode=disable",
		"postgres://u:s3cret@host/db?pool_max_conns=x", "host=127.0.0.1 port=1 password=s3cret sslmode=disable",
	} {
		_, err := postgres.OpenStore(t.Context(), postgres.StoreOptions{DSN: dsn})
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("err = %v", err)
		}
	}
}

func TestSeveralHosts(t *testing.T) {
	u, err := url.Parse(migrated(t))
	must(t, err)
	u.Host = "127.0.0.1:1," + u.Host
	s := open(t, postgres.StoreOptions{DSN: with(t, u.String(), "target_session_attrs=read-write")})
	mustClaim(t, s, claimOf("a"), hookonce.New)
}

// TestPreviousKeys: a claim with the keys of older recipes takes all or none.
func TestPreviousKeys(t *testing.T) {
	dsn := migrated(t)
	now := time.Now()
	s := open(t, postgres.StoreOptions{DSN: dsn, Now: func() time.Time { return now }})
	both := func(id, old string) hookonce.Claim {
		c := claimOf(id)
		c.Previous = []hookonce.Key{{Source: "orders", ID: old}, {Source: "orders", ID: id}}
		return c
	}
	mustClaim(t, s, claimOf("old 1"), hookonce.New)                    // by the old recipe
	dup := mustClaim(t, s, both("new 1", "old 1"), hookonce.Duplicate) // by the new one
	if dup.Key.ID != "old 1" {
		t.Errorf("first key %v", dup.Key)
	}
	mustClaim(t, s, claimOf("new 1"), hookonce.New) // which took nothing
	c := both("new 2", "old 2")
	first := mustClaim(t, s, c, hookonce.New)
	if again := mustClaim(t, s, c, hookonce.New); again.Entry != first.Entry {
		t.Errorf("entry %v, then %v", first.Entry, again.Entry)
	}
	dup = mustClaim(t, s, claimOf("old 2"), hookonce.Duplicate)
	if dup.Key.ID != "new 2" {
		t.Errorf("first key %v", dup.Key)
	}
	out, err := s.Claim(t.Context(), []hookonce.Claim{both("new 3", "old 3"), claimOf("old 3"), both("new 4", "old 3"), claimOf("new 4"), both("new 5", "old 2")})
	must(t, err)
	want := []hookonce.Outcome{hookonce.New, hookonce.Duplicate, hookonce.Duplicate, hookonce.New, hookonce.Duplicate}
	for i, got := range out {
		if got.Outcome != want[i] {
			t.Errorf("%d: %v, %v", i, got.Outcome, got.Err)
		}
	}
	if n := len(pending(t, s)); n != 5 {
		t.Errorf("%d entries, want 5", n)
	}
	now = now.Add(time.Hour)
	mustClaim(t, s, claimOf("old 2"), hookonce.New) // expired
	mustClaim(t, s, both("new 2", "old 2"), hookonce.Duplicate)
	mustClaim(t, s, both("new 3", "old 3"), hookonce.New)
}

// TestPreviousKeysAtOnce: receivers with the old and the new recipe run together.
func TestPreviousKeysAtOnce(t *testing.T) {
	dsn := migrated(t)
	a, b := open(t, postgres.StoreOptions{DSN: dsn}), open(t, postgres.StoreOptions{DSN: dsn})
	const keys, each = 30, 4
	fresh := make([]atomic.Int64, keys)
	var wg sync.WaitGroup
	for i := range keys * each {
		wg.Go(func() {
			c := claimOf(fmt.Sprint("old", i%keys))
			s := a
			if i/keys%2 == 1 {
				c.Previous, c.Event.Key.ID, s = []hookonce.Key{c.Event.Key}, fmt.Sprint("new", i%keys), b
			}
			got, err := s.ClaimOne(t.Context(), c)
			if err != nil {
				t.Error(err)
			}
			if got.Outcome == hookonce.New {
				fresh[i%keys].Add(1)
			}
		})
	}
	wg.Wait()
	for i := range fresh {
		if n := fresh[i].Load(); n != 1 {
			t.Errorf("key %d is new %d times", i, n)
		}
	}
	if n := len(pending(t, a)) + len(pending(t, b)); n != keys {
		t.Errorf("%d entries, want %d", n, keys)
	}
}

// TestOneTakesAnExpiredClaimOver among many that try at once.
func TestOneTakesAnExpiredClaimOver(t *testing.T) {
	dsn := migrated(t)
	var now atomic.Int64
	clock := func() time.Time { return time.Unix(1_700_000_000, now.Load()) }
	a, b := open(t, postgres.StoreOptions{DSN: dsn, Now: clock}), open(t, postgres.StoreOptions{DSN: dsn, Now: clock})
	for range 5 {
		var fresh atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				s := a
				if i%2 == 1 {
					s = b
				}
				if i%16 == 0 {
					if _, err := s.Maintain(t.Context()); err != nil {
						t.Error(err)
					}
				}
				got, err := s.ClaimOne(t.Context(), claimOf("a"))
				if err != nil {
					t.Error(err)
				}
				if got.Outcome == hookonce.New {
					fresh.Add(1)
				}
			})
		}
		wg.Wait()
		if n := fresh.Load(); n != 1 {
			t.Errorf("new %d times", n)
		}
		now.Add(int64(time.Hour))
	}
}

// TestPreviousKeysUnderOneToken: the items of one request share a token.
func TestPreviousKeysUnderOneToken(t *testing.T) {
	s := open(t, postgres.StoreOptions{DSN: migrated(t)})
	with := func(id string, previous ...hookonce.Key) hookonce.Claim {
		c := claimOf(id)
		c.Previous = previous
		return c
	}
	for i := range 20 {
		old := hookonce.Key{Source: "orders", ID: fmt.Sprint("old", i)}
		a, b, c := with(fmt.Sprint("a", i), old), with(fmt.Sprint("b", i), old), with(old.ID)
		b.Token = a.Token
		out, err := s.Claim(t.Context(), []hookonce.Claim{a, b, c, claimOf(b.Event.Key.ID)})
		must(t, err)
		for j, want := range []hookonce.Outcome{hookonce.New, hookonce.Duplicate, hookonce.Duplicate, hookonce.New} {
			if out[j].Outcome != want || j < 3 && out[j].Key != a.Event.Key {
				t.Errorf("round %d, item %d: %v of %v, %v", i, j, out[j].Outcome, out[j].Key, out[j].Err)
			}
		}
	}
}

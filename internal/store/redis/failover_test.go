package redis_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
)

// stream claims without end from several goroutines. A claim whose state is
// unknown is repeated with its token until it is known.
type stream struct {
	mu       sync.Mutex
	accepted map[string]hookonce.Claim
	unknown  int
	stop     chan struct{}
	wg       sync.WaitGroup
}

func startStream(t *testing.T, s *redis.Store) *stream {
	t.Helper()
	st := &stream{accepted: map[string]hookonce.Claim{}, stop: make(chan struct{})}
	for w := range 8 {
		st.wg.Go(func() {
			for i := 0; ; i++ {
				c := claimOf(fmt.Sprintf("%d-%d", w, i))
				for pause := time.Duration(0); ; pause = 5 * time.Millisecond {
					select {
					case <-st.stop:
						return
					case <-time.After(pause):
					}
					got, err := s.ClaimOne(t.Context(), c)
					if err == nil {
						if got.Outcome != hookonce.New {
							t.Errorf("%s is %v to its own token", c.Event.Key, got.Outcome)
						}
						st.note(c)
						break
					}
					if !errors.Is(err, hookonce.ErrUnknown) {
						t.Errorf("claim: %v", err)
					}
					st.missed()
				}
			}
		})
	}
	return st
}

func (st *stream) note(c hookonce.Claim) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.accepted[c.Event.Key.ID] = c
}

func (st *stream) missed() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.unknown++
}

func (st *stream) count() (accepted, unknown int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return len(st.accepted), st.unknown
}

// goesOn waits until n more claims are accepted.
func (st *stream) goesOn(t *testing.T, what string, n int) {
	t.Helper()
	from, _ := st.count()
	wait(t, what, func() bool { now, _ := st.count(); return now >= from+n })
}

// end stops it, and checks that nothing accepted is lost, and nothing is there twice.
func (st *stream) end(t *testing.T, s *redis.Store) {
	t.Helper()
	close(st.stop)
	st.wg.Wait()
	kept := map[string]int{}
	after := hookonce.EntryID{}
	for {
		es, err := s.Pending(t.Context(), after, 500)
		must(t, err)
		if len(es) == 0 {
			break
		}
		for _, e := range es {
			kept[e.Event.Key.ID]++
		}
		after = es[len(es)-1].ID
	}
	for id := range st.accepted {
		if kept[id] != 1 {
			t.Errorf("%s was accepted and is in the outbox %d times", id, kept[id])
		}
	}
	checked := 0
	for id, c := range st.accepted {
		mustClaim(t, s, claimOf(id), hookonce.Duplicate)
		mustClaim(t, s, c, hookonce.New) // its own token
		if checked++; checked == 50 {
			break
		}
	}
	stats, err := s.Stats(t.Context())
	if err != nil || stats.Events != int64(len(kept)) {
		t.Errorf("counted %d, %v; there are %d", stats.Events, err, len(kept))
	}
	t.Logf("%d accepted, %d unknown on the way", len(st.accepted), st.unknown)
}

// sentinelFailover: with redis_wait 1 nothing acknowledged is lost when the
// replica takes over; nothing is acknowledged while there is none.
func sentinelFailover(t *testing.T, g *sentinels) {
	s := open(t, redis.Options{URL: g.url(0), Wait: 1, WaitTimeout: time.Second})
	st := startStream(t, s)
	st.goesOn(t, "claims", 100)
	g.master.kill()
	wait(t, "the replica takes over", func() bool {
		role, err := g.replica.client().Do(t.Context(), "role").Slice()
		return err == nil && role[0] == "master"
	})
	wait(t, "the store finds the new master, and misses a replica", func() bool {
		_, err := s.ClaimOne(t.Context(), claimOf("after"))
		return err != nil && errors.Is(err, hookonce.ErrUnknown) && redis.IsTooFew(err)
	})
	g.master.start() // Sentinel makes it a replica; it takes its time
	must(t, g.master.client().ReplicaOf(t.Context(), "127.0.0.1", strconv.Itoa(g.replica.port)).Err())
	st.goesOn(t, "claims after the fail-over", 100)
	st.end(t, s)
}

// clusterFailover: the shards of the other masters go on meanwhile.
func clusterFailover(t *testing.T, c *cluster) {
	c.flush(t)
	s := open(t, redis.Options{URL: c.url(), Wait: 1, WaitTimeout: time.Second})
	st := startStream(t, s)
	st.goesOn(t, "claims", 200)
	victim, heir := c.nodes[0], c.nodes[3]
	victim.kill()
	wait(t, "the replica takes over", func() bool {
		role, err := heir.client().Do(t.Context(), "role").Slice()
		return err == nil && role[0] == "master"
	})
	victim.start()
	wait(t, "the old master follows", victim.linkUp)
	st.goesOn(t, "claims after the fail-over", 200)
	for shard := range redis.Shards {
		wait(t, fmt.Sprint("claims of shard ", shard), func() bool {
			_, err := s.ClaimOne(t.Context(), redis.ClaimOfShard(claimOf(""), shard))
			return err == nil
		})
	}
	// The outbox holds these too: only what was accepted is compared.
	es, err := s.Pending(t.Context(), hookonce.EntryID{}, 1<<20)
	must(t, err)
	var extra []hookonce.Entry
	for _, e := range es {
		if e.Event.Key.Source == "shard" {
			extra = append(extra, e)
		}
	}
	must(t, s.Settle(t.Context(), extra))
	st.end(t, s)
}

package redis_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
)

// TestStandingServer: a server that takes requests and answers none holds every
// connection of the pool; callers are told within their time, and all is told
// apart afterwards.
func TestStandingServer(t *testing.T) {
	t.Parallel()
	n := startNode(t)
	s := open(t, redis.Options{URL: n.url()})
	mustClaim(t, s, claimOf("before"), hookonce.New)
	resume := pause(t, n)
	const callers = 60 // the pool has 16 connections
	cs := make([]hookonce.Claim, callers)
	var wg sync.WaitGroup
	var late atomic.Int64
	start := time.Now()
	for i := range cs {
		cs[i] = claimOf(fmt.Sprint(i))
		wg.Go(func() {
			_, err := s.Claim(t.Context(), cs[i:i+1])
			if !errors.Is(err, hookonce.ErrUnknown) {
				t.Errorf("claim: %v, want unknown", err)
			}
			if time.Since(start) > 30*time.Second {
				late.Add(1)
			}
		})
	}
	wg.Wait()
	if late.Load() > 0 {
		t.Errorf("%d callers waited longer than their time", late.Load())
	}
	resume()
	for _, c := range cs {
		wait(t, "the server answers again", func() bool {
			got, err := s.ClaimOne(t.Context(), c)
			return err == nil && got.Outcome == hookonce.New
		})
	}
	if st, err := s.Stats(t.Context()); err != nil || st.Events != callers+1 {
		t.Errorf("%d wait, %v; want %d", st.Events, err, callers+1)
	}
}

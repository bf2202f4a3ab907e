package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
)

func wantTooFew(t *testing.T, s *redis.Store, c hookonce.Claim) {
	t.Helper()
	_, err := s.ClaimOne(t.Context(), c)
	if !errors.Is(err, hookonce.ErrUnknown) || !redis.IsTooFew(err) {
		t.Errorf("%s: %v, want too few replicas", c.Event.Key, err)
	}
}

// TestWait: no claim is answered before enough replicas have it, a duplicate's
// neither; and one that was made meanwhile is New to its token.
func TestWait(t *testing.T) {
	t.Parallel()
	master := startNode(t)
	plain := open(t, redis.Options{URL: master.url(), Instance: "one"})
	known := claimOf("known")
	mustClaim(t, plain, known, hookonce.New)
	s := open(t, redis.Options{URL: master.url(), Instance: "two", Wait: 1, WaitTimeout: 300 * time.Millisecond})
	wantWarning(t, s, "redis_wait is 1 and there are 0 replicas")
	c := claimOf("a")
	wantTooFew(t, s, c)
	wantTooFew(t, s, claimOf("known"))
	wantTooFew(t, s, known)

	replica := startNode(t, "--replicaof", fmt.Sprintf("127.0.0.1 %d", master.port))
	wait(t, "the replica follows", replica.linkUp)
	slow := redis.Options{URL: master.url(), Instance: "two", Wait: 1, WaitTimeout: 10 * time.Second}
	s = open(t, slow)
	got := mustClaim(t, s, c, hookonce.New)
	if got.Entry == (hookonce.EntryID{}) {
		t.Error("the entry of the first try is not told")
	}
	mustClaim(t, s, claimOf("a"), hookonce.Duplicate)
	mustClaim(t, s, claimOf("known"), hookonce.Duplicate)
	wantWarning(t, plain, "there are replicas (1) and redis_wait is 0")
	for _, w := range s.Warnings(t.Context()) {
		if strings.Contains(w, "redis_wait") {
			t.Errorf("warning %q", w)
		}
	}

	// A duplicate's WAIT is for a write of its own: while the replica stands
	// still, none is answered.
	s = open(t, redis.Options{URL: master.url(), Instance: "two", Wait: 1, WaitTimeout: 300 * time.Millisecond})
	pause(t, replica)
	wantTooFew(t, s, claimOf("a"))
	wantTooFew(t, s, c)
	wantTooFew(t, s, claimOf("b"))
	must(t, s.Settle(t.Context(), pending(t, s))) // needs none
}

func wantWarning(t *testing.T, s *redis.Store, text string) {
	t.Helper()
	w := s.Warnings(t.Context())
	for _, line := range w {
		if strings.Contains(line, text) {
			return
		}
	}
	t.Errorf("warnings %q, want %q", w, text)
}

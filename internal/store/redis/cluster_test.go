package redis_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/redis"
)

func (c *cluster) flush(t *testing.T) {
	t.Helper()
	must(t, c.client().ForEachMaster(t.Context(), func(ctx context.Context, r *goredis.Client) error { return r.FlushAll(ctx).Err() }))
}

// clusterNames pins what others rely on: the tag and the shard of a key.
func clusterNames(t *testing.T, c *cluster) {
	c.flush(t)
	s := open(t, redis.Options{URL: c.url(), Instance: "one"})
	cs := make([]hookonce.Claim, 200)
	for i := range cs {
		cs[i] = claimOf(fmt.Sprint("A-", i))
	}
	_, err := s.Claim(t.Context(), cs)
	must(t, err)
	shape := regexp.MustCompile(`^(idem:\{\d+\}:orders:A-\d+|hookonce:\{\d+\}:(instances|counters|outbox:one))$`)
	shards := map[string]bool{}
	server := c.client()
	err = server.ForEachMaster(t.Context(), func(ctx context.Context, r *goredis.Client) error {
		names, err := r.Keys(ctx, "*").Result()
		for _, name := range names {
			if !shape.MatchString(name) {
				t.Errorf("unexpected key %q", name)
			}
		}
		return err
	})
	must(t, err)
	for _, claim := range cs {
		name := redis.ClaimName(claim.Event.Key, true)
		shards[name[:strings.Index(name, "}")]] = true
		if n := server.Exists(t.Context(), name).Val(); n != 1 {
			t.Errorf("%s is not there", name)
		}
	}
	if len(shards) < 50 {
		t.Errorf("200 keys lie in %d of %d shards", len(shards), redis.Shards)
	}
	// Never change this: claims would be looked for in another place.
	if got := redis.ClaimName(hookonce.Key{Source: "orders", ID: "A-1"}, true); got != "idem:{42}:orders:A-1" {
		t.Errorf("the claim of orders/A-1 is %s", got)
	}
}

// clusterMoves moves a shard's slot to another node, and claims all the time:
// before, while it is migrating, and after.
func clusterMoves(t *testing.T, c *cluster) {
	c.flush(t)
	s := open(t, redis.Options{URL: c.url(), Wait: 1, Instance: "one"})
	ctx, from, to := t.Context(), c.nodes[0].client(), c.nodes[1].client()
	shard, slot := -1, int64(0)
	for i := range redis.Shards {
		if slot = from.ClusterKeySlot(ctx, "{"+strconv.Itoa(i)+"}").Val(); slot <= 5460 {
			shard = i
			break
		}
	}
	first := redis.ClaimOfShard(claimOf(""), shard)
	mustClaim(t, s, first, hookonce.New)
	set := func(r *goredis.Client, args ...any) {
		t.Helper()
		must(t, r.Do(ctx, append([]any{"cluster", "setslot", slot}, args...)...).Err())
	}
	fromID, toID := from.ClusterMyID(ctx).Val(), to.ClusterMyID(ctx).Val()
	set(to, "importing", fromID)
	set(from, "migrating", toID)
	for {
		names := from.ClusterGetKeysInSlot(ctx, int(slot), 100).Val()
		if len(names) == 0 {
			break
		}
		for _, name := range names {
			must(t, from.Migrate(ctx, "127.0.0.1", strconv.Itoa(c.nodes[1].port), name, 0, 0).Err())
		}
	}
	mustClaim(t, s, first, hookonce.New) // its own token; the node says ASK
	again := first
	again.Token = hookonce.NewToken()
	mustClaim(t, s, again, hookonce.Duplicate)
	for _, n := range []int{1, 0, 2} {
		set(c.nodes[n].client(), "node", toID)
	}
	mustClaim(t, s, again, hookonce.Duplicate) // MOVED
	es := pending(t, s)
	if len(es) != 1 || es[0].Event.Key != first.Event.Key {
		t.Errorf("pending %+v", es)
	}
	must(t, s.Settle(ctx, es))
	st, err := s.Stats(ctx)
	if err != nil || st.Events != 0 || st.Bytes != 0 {
		t.Errorf("stats %+v, %v", st, err)
	}
}

// clusterPartlyDown: with one master standing still, the claims of the others
// are answered, in the same batch.
func clusterPartlyDown(t *testing.T, c *cluster) {
	c.flush(t)
	s := open(t, redis.Options{URL: c.url()})
	var cs []hookonce.Claim
	for shard := range redis.Shards {
		cs = append(cs, redis.ClaimOfShard(claimOf(""), shard))
		cs[shard].Token = hookonce.NewToken()
	}
	resume := pause(t, c.nodes[2])
	out, err := s.Claim(t.Context(), cs)
	resume()
	must(t, err)
	down := 0
	for i, got := range out {
		switch {
		case errors.Is(got.Err, hookonce.ErrUnknown):
			down++
		case got.Err != nil || got.Outcome != hookonce.New:
			t.Errorf("shard %d: %v, %v", i, got.Outcome, got.Err)
		}
	}
	if down == 0 || down > len(cs)/2 {
		t.Errorf("%d of %d shards are unknown", down, len(cs))
	}
	wait(t, "all are claimed", func() bool {
		out, err := s.Claim(t.Context(), cs)
		for _, got := range out {
			if err = errors.Join(err, got.Err); got.Err == nil && got.Outcome != hookonce.New {
				t.Errorf("%s: %v to its own token", got.Key, got.Outcome)
			}
		}
		return err == nil
	})
	if n := len(pending(t, s)); n != len(cs) {
		t.Errorf("%d entries, want %d", n, len(cs))
	}
}

// clusterByWrongURL: whichever node is taken for the whole, the error says so.
func clusterByWrongURL(t *testing.T, c *cluster) {
	c.flush(t)
	for _, n := range c.nodes[:3] {
		s, err := redis.Open(t.Context(), redis.Options{URL: n.url()})
		if err == nil {
			_, err = s.ClaimOne(t.Context(), claimOf("a"))
			must(t, s.Close())
		}
		if !errors.Is(err, hookonce.ErrUnknown) || !strings.Contains(err.Error(), "use redis-cluster://") {
			t.Errorf("err = %v", err)
		}
	}
}

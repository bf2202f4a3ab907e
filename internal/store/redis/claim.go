package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
)

// Bounds of one script call: Redis does one thing at a time.
const (
	maxItems = 128
	maxBytes = 4 << 20
)

// claiming is a checked claim in the form that the script takes.
type claiming struct {
	claim hookonce.Claim
	seen  time.Time
	shard int
	// here are the names that the script looks at, the claim's own first; there
	// are those in other shards of a cluster, which are read before.
	here, there []named
	event       []byte
	size        int
	ttl         int64
	out         hookonce.Claimed
}

// named is a name under which a claim may be known.
type named struct {
	name  string
	key   hookonce.Key
	value []byte // what New writes there; nil: nothing
}

// Size lets large events fill a batch sooner.
func (c *claiming) Size() int { return c.size }

func (s *Store) prepare(c hookonce.Claim) (*claiming, error) {
	if err := entry.Check(c); err != nil {
		return nil, err
	}
	seen := s.o.Now()
	key := c.Claimed()
	p := &claiming{
		claim: c, seen: time.UnixMilli(seen.UnixMilli()).UTC(), shard: s.keys.shard(key),
		event: entry.Marshal(c.Event), ttl: c.TTL.Milliseconds(),
	}
	p.here = append(p.here, named{s.keys.claim(key), key, pack(c, key, seen)})
	for i, k := range c.Previous {
		switch {
		case k == key || slices.Contains(c.Previous[:i], k):
		case s.keys.shards == 1:
			p.here = append(p.here, named{s.keys.claim(k), k, pack(c, k, seen)})
		default:
			p.there = append(p.there, named{name: s.keys.claim(k), key: k})
		}
	}
	s.addOld(p)
	p.size = len(p.event)
	for _, n := range p.here {
		p.size += len(n.value)
	}
	return p, nil
}

// ClaimOne claims one key. Calls that wait at the same moment share a script
// call. The error is the item's own ([hookonce.Claimed.Err]) or the store's;
// see [Store.Claim].
func (s *Store) ClaimOne(ctx context.Context, c hookonce.Claim) (hookonce.Claimed, error) {
	p, err := s.prepare(c)
	if err != nil {
		return hookonce.Claimed{Err: err}, err
	}
	out, err := s.claims.Do(ctx, p)
	if err == nil {
		return out, out.Err
	}
	if !errors.Is(err, hookonce.ErrUnknown) {
		err = fmt.Errorf("%w: %w", hookonce.ErrUnknown, err)
	}
	return hookonce.Claimed{}, err
}

// Claim claims keys and puts the events of the new ones into the outbox, in one
// script call (a large batch: in several; in a cluster: one for each shard that
// is concerned). Of a key that the batch repeats, the first is New and the
// others are its duplicates.
//
// Previous keys are claimed in the same step. In a cluster, where they lie in
// other shards, they are looked up before it and not claimed: all receivers of
// a source that changes its recipe there restart together.
//
// An error means that the state of all of them is unknown and wraps
// hookonce.ErrUnknown; repeat the call with the same tokens. What concerns one
// item is in its Err: hookonce.ErrInvalid, hookonce.ErrOutboxFull, or
// hookonce.ErrUnknown (a value that is not ours; in a cluster also: its node
// did not answer).
func (s *Store) Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error) {
	out := make([]hookonce.Claimed, len(claims))
	var items []*claiming
	var at []int
	for i, c := range claims {
		p, err := s.prepare(c)
		if err != nil {
			out[i].Err = err
			continue
		}
		items, at = append(items, p), append(at, i)
	}
	for len(items) > 0 {
		n := fitting(items)
		got, err := s.claimBatch(ctx, items[:n])
		if err != nil {
			return nil, err
		}
		for j, c := range got {
			out[at[j]] = c
		}
		items, at = items[n:], at[n:]
	}
	entry.MarkRepeats(claims, out)
	return out, nil
}

// fitting is how many of the items go into one script call.
func fitting(items []*claiming) int {
	bytes := 0
	for n, c := range items {
		if n == maxItems || bytes >= maxBytes {
			return n
		}
		bytes += c.Size()
	}
	return len(items)
}

package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
)

// Bounds of one batch.
const (
	maxItems = 256
	maxBytes = 8 << 20
)

// op is one caller's share of a batch.
type op struct {
	items []*claiming
	bytes int
}

// Size lets large events fill a batch sooner.
func (o *op) Size() int { return o.bytes }

// claiming is one checked claim on its way.
type claiming struct {
	claim hookonce.Claim
	keys  []key  // to claim together: the claimed one, then those of older recipes
	event []byte // encoded
	id    int64  // of its entry, should it be new
	now   int64  // of the attempt
	place place
	out   hookonce.Claimed
}

type key struct {
	hookonce.Key
	digest [16]byte
}

func newClaiming(c hookonce.Claim) *claiming {
	out := &claiming{claim: c, keys: make([]key, 0, 1+len(c.Previous)), event: entry.Marshal(c.Event)}
	for _, k := range append([]hookonce.Key{c.Claimed()}, c.Previous...) {
		k := key{k, k.Digest()}
		if !slices.Contains(out.keys, k) {
			out.keys = append(out.keys, k)
		}
	}
	return out
}

// place is what is known about a claim's key.
type place uint8

const (
	open    place = iota // nothing, or that it was not there
	expired              // there is an old claim
	done                 // out is the answer
)

func (c *claiming) answer(out hookonce.Claimed) { c.out, c.place = out, done }

func (c *claiming) fail(err error) { c.answer(hookonce.Claimed{Err: err}) }

// ClaimOne claims one key. Calls that wait at the same moment share a
// statement. The error is the item's own ([hookonce.Claimed.Err]) or the
// store's; see [Store.Claim].
func (s *Store) ClaimOne(ctx context.Context, c hookonce.Claim) (hookonce.Claimed, error) {
	out, err := s.Claim(ctx, []hookonce.Claim{c})
	if err != nil {
		return hookonce.Claimed{}, err
	}
	return out[0], out[0].Err
}

// Claim claims keys and puts the events of the new ones into the outbox, in one
// statement (a large batch: in several). Of a key that the batch repeats, the
// first is New and the others are its duplicates.
//
// An error means that the state of all of them is unknown and wraps
// hookonce.ErrUnknown; repeat the call with the same tokens. What concerns one
// item is in its Err: hookonce.ErrInvalid, hookonce.ErrOutboxFull, or
// hookonce.ErrUnknown.
func (s *Store) Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error) {
	out := make([]hookonce.Claimed, len(claims))
	next := &op{}
	var at []int
	send := func() error {
		if len(at) == 0 {
			return nil
		}
		got, err := s.claims.Do(ctx, next)
		if err != nil {
			return s.unknown(err)
		}
		for i, c := range got {
			out[at[i]] = c
		}
		next, at = &op{}, nil
		return nil
	}
	for i, c := range claims {
		if err := entry.Check(c); err != nil {
			out[i].Err = err
			continue
		}
		item := newClaiming(c)
		if len(at) == maxItems || len(at) > 0 && next.bytes+len(item.event) > maxBytes {
			if err := send(); err != nil {
				return nil, err
			}
		}
		next.items, next.bytes, at = append(next.items, item), next.bytes+len(item.event), append(at, i)
	}
	if err := send(); err != nil {
		return nil, err
	}
	entry.MarkRepeats(claims, out)
	return out, nil
}

// carryOut runs one batch.
func (s *Store) carryOut(ctx context.Context, ops []*op) ([][]hookonce.Claimed, error) {
	start := time.Now()
	var items []*claiming
	for _, o := range ops {
		items = append(items, o.items...)
	}
	err := s.together(ctx, items)
	s.o.Metrics.Claim.WithLabelValues("postgres").Observe(time.Since(start).Seconds())
	if err = s.unknown(err); err != nil {
		return nil, err
	}
	out := make([][]hookonce.Claimed, len(ops))
	for i, o := range ops {
		out[i] = make([]hookonce.Claimed, len(o.items))
		for j, c := range o.items {
			out[i][j] = c.out
		}
	}
	return out, nil
}

// maxConflicts is how often a batch that lost a deadlock is tried again.
const maxConflicts = 5

// together claims items in as few statements as their data allows. A data
// error halves them until the guilty item stands alone. An error means that no
// item's state is known; where only some are unknown, those have it.
func (s *Store) together(ctx context.Context, items []*claiming) error {
	var err error
	for try := 0; ; try++ {
		if err = s.attempt(ctx, items); !isConflict(err) || try == maxConflicts {
			break
		}
	}
	switch {
	case err == nil || !isData(err):
		return err
	case len(items) == 1:
		items[0].fail(fmt.Errorf("%w: postgres: %w", hookonce.ErrInvalid, err))
		return nil
	}
	half := len(items) / 2
	for _, part := range [][]*claiming{items[:half], items[half:]} {
		if err := s.together(ctx, part); err != nil {
			err = s.unknown(err)
			for _, c := range part {
				c.fail(err)
			}
		}
	}
	return nil
}

// maxRounds bounds how often keys that come and go under a batch are tried.
const maxRounds = 5

// attempt claims items: it inserts those that may be new, and reads those that
// were there before. It may be repeated with the same items.
func (s *Store) attempt(ctx context.Context, items []*claiming) error {
	me, err := s.ready(ctx)
	if err != nil {
		return err
	}
	now := s.o.Now().UnixMilli()
	for _, c := range items {
		c.place, c.now, c.id = open, now, me.nextID()
	}
	if items, err = s.meetOld(ctx, items); err != nil || len(items) == 0 {
		return err
	}
	room, near := s.books.reserve(items, s.o)
	defer func() { s.books.release(room) }()
	if near || s.lookFirst.Load() {
		if err := s.find(ctx, me, items); err != nil {
			return err
		}
	}
	if near {
		if room, err = s.admit(ctx, items); err != nil {
			return err
		}
	}
	for round := 0; round < maxRounds; round++ {
		if left(items) == nil {
			break
		}
		if err := s.insert(ctx, me, items, round > 0); err != nil {
			return err
		}
		if err := s.find(ctx, me, left(items)); err != nil {
			return err
		}
	}
	for _, c := range left(items) {
		c.fail(fmt.Errorf("%w: the key changes faster than it can be read", hookonce.ErrUnknown))
	}
	s.observe(items)
	if near {
		s.touchSoon(ctx) // for the other instances; the answers stand without it
		return nil
	}
	s.nudge()
	return nil
}

// left is what has no answer yet.
func left(items []*claiming) []*claiming {
	var out []*claiming
	for _, c := range items {
		if c.place != done {
			out = append(out, c)
		}
	}
	return out
}

// observe decides where the next batch begins.
func (s *Store) observe(items []*claiming) {
	dups := 0
	for _, c := range items {
		if c.out.Outcome == hookonce.Duplicate {
			dups++
		}
	}
	s.lookFirst.Store(2*dups > len(items))
}

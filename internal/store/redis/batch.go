package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// claimBatch looks up what lies in other shards, and runs the claim script for
// the rest: once for each shard.
func (s *Store) claimBatch(ctx context.Context, items []*claiming) ([]hookonce.Claimed, error) {
	start := time.Now()
	open := s.lookThere(ctx, items)
	parts := map[int][]*claiming{}
	for _, c := range open {
		parts[c.shard] = append(parts[c.shard], c)
	}
	calls := make([]*request, 0, len(parts))
	batches := make([][]*claiming, 0, len(parts))
	for shard, part := range parts {
		calls, batches = append(calls, s.claimCall(shard, part)), append(batches, part)
	}
	s.send(ctx, s.o.Wait > 0, calls...)
	s.o.Metrics.Claim.WithLabelValues("redis").Observe(time.Since(start).Seconds())
	for i, r := range calls {
		s.readPart(r, batches[i])
	}
	return s.results(ctx, items)
}

// claimCall is the script call for the claims of one shard.
func (s *Store) claimCall(shard int, items []*claiming) *request {
	keys := append(make([]string, 0, 3+len(items)), s.keys.outbox(shard), s.keys.instances(shard), s.keys.counters(shard))
	args := append(make([]any, 0, 6+4*len(items)), s.o.Instance, s.o.Lease.Milliseconds(),
		s.share(s.o.MaxEvents), s.share(s.o.MaxBytes), s.o.MaxBytes, s.waitFlag())
	for _, c := range items {
		args = append(args, len(c.here), c.ttl, c.event)
		for _, n := range c.here {
			keys, args = append(keys, n.name), append(args, n.value)
		}
	}
	return claimScript.call(keys, args...)
}

// share is a shard's part of a bound.
func (s *Store) share(bound int64) int64 {
	return (bound + int64(s.keys.shards) - 1) / int64(s.keys.shards)
}

func (s *Store) waitFlag() string {
	if s.o.Wait > 0 {
		return "1"
	}
	return "0"
}

// readPart understands the script's answer to the claims of one shard.
func (s *Store) readPart(r *request, items []*claiming) {
	answers, _ := r.value.([]any)
	err := s.unknown(r.err)
	if err == nil && len(answers) != len(items) {
		err = fmt.Errorf("%w: %d answers to %d claims", hookonce.ErrUnknown, len(answers), len(items))
	}
	for i, c := range items {
		if err != nil {
			c.out = hookonce.Claimed{Err: err}
			continue
		}
		c.out = s.read(c, answers[i])
	}
}

// results are the answers to all; an error when none of them could be told for
// the store's sake.
func (s *Store) results(ctx context.Context, items []*claiming) ([]hookonce.Claimed, error) {
	out := make([]hookonce.Claimed, len(items))
	down := 0
	for i, c := range items {
		out[i] = c.out
		switch {
		case errors.Is(c.out.Err, errForeign):
			key := c.claim.Claimed()
			s.o.Logger.WarnContext(ctx, "claim state unknown: "+errForeign.Error(), "source", key.Source, "key", key.Escaped())
		case errors.Is(c.out.Err, errStore):
			down++
		}
	}
	if down == len(items) {
		return nil, out[0].Err
	}
	return out, nil
}

// read understands the script's answer to one claim.
func (s *Store) read(c *claiming, answer any) hookonce.Claimed {
	fields, _ := answer.([]any)
	text := func(i int) string {
		if i >= len(fields) {
			return ""
		}
		s, _ := fields[i].(string)
		return s
	}
	var found named
	if len(fields) > 1 {
		if i, ok := fields[1].(int64); ok && i >= 0 && i < int64(len(c.here)) {
			found = c.here[i]
		}
	}
	switch text(0) {
	case "n":
		id, err := s.keys.entryID(c.shard, text(1))
		if err != nil {
			return unknownItem(err)
		}
		return hookonce.Claimed{
			Outcome: hookonce.New, Entry: id, Key: c.claim.Event.Key,
			First: c.claim.Answer, FirstSeen: c.seen, Fingerprint: c.claim.Fingerprint,
		}
	case "f":
		return hookonce.Claimed{Err: hookonce.ErrOutboxFull}
	case "u":
		return s.old(c, found.key, text(2))
	case "d", "o":
		return s.known(c, found.key, text(2), text(3))
	}
	return unknownItem(fmt.Errorf("the script answered %q", text(0)))
}

// known reads a value of ours under the name of one of a claim's keys; entry is
// the id of an own one that still waits.
func (s *Store) known(c *claiming, key hookonce.Key, value, entry string) hookonce.Claimed {
	out, token, err := unpack(key, value)
	if err != nil {
		return unknownItem(err)
	}
	out.Outcome = hookonce.Duplicate
	if token != c.claim.Token {
		return out
	}
	out.Outcome = hookonce.New
	if entry == "" {
		return out
	}
	if out.Entry, err = s.keys.entryID(c.shard, entry); err != nil {
		return unknownItem(err)
	}
	return out
}

func unknownItem(err error) hookonce.Claimed {
	return hookonce.Claimed{Err: fmt.Errorf("%w: %w", hookonce.ErrUnknown, err)}
}

// lookThere reads the names that lie in other shards, answers the claims that
// are known by one, and returns the others.
func (s *Store) lookThere(ctx context.Context, items []*claiming) []*claiming {
	var looks []*request
	for _, c := range items {
		for _, n := range c.there {
			looks = append(looks, lookScript.call([]string{n.name}, s.waitFlag()))
		}
	}
	if len(looks) == 0 {
		return items
	}
	s.send(ctx, s.o.Wait > 0, looks...)
	open := make([]*claiming, 0, len(items))
	for _, c := range items {
		if !s.knownThere(c, looks[:len(c.there)]) {
			open = append(open, c)
		}
		looks = looks[len(c.there):]
	}
	return open
}

// knownThere answers a claim by the first name that is taken, or whose state is
// unknown.
func (s *Store) knownThere(c *claiming, looks []*request) bool {
	for i, r := range looks {
		if err := s.unknown(r.err); err != nil {
			c.out = hookonce.Claimed{Err: err}
			return true
		}
		found, ok := r.value.([]any)
		if !ok {
			continue
		}
		value := ""
		if len(found) == 1 {
			value, _ = found[0].(string)
		}
		if len(value) >= len(magic) && value[:len(magic)] == magic {
			c.out = s.known(c, c.there[i].key, value, "")
		} else {
			c.out = s.old(c, c.there[i].key, value)
		}
		return true
	}
	return false
}

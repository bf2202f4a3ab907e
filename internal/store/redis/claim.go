package redis

import (
	"context"
	"errors"
	"fmt"
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
	key   hookonce.Key
	claim hookonce.Claim
	seen  time.Time
	value []byte
	event []byte
	ttl   int64
}

// Size lets large events fill a batch sooner.
func (c *claiming) Size() int { return len(c.value) + len(c.event) }

func (s *Store) prepare(c hookonce.Claim) (*claiming, error) {
	if err := entry.Check(c); err != nil {
		return nil, err
	}
	seen := s.o.Now()
	return &claiming{
		key: c.Claimed(), claim: c, seen: time.UnixMilli(seen.UnixMilli()).UTC(),
		value: pack(c, seen), event: entry.Marshal(c.Event), ttl: c.TTL.Milliseconds(),
	}, nil
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
// script call (a large batch: in several). Of a key that the batch repeats, the first is New and the others
// are its duplicates.
//
// An error means that the state of all of them is unknown and wraps
// hookonce.ErrUnknown; repeat the call with the same tokens. What concerns one
// item is in its Err: hookonce.ErrInvalid, hookonce.ErrOutboxFull, or
// hookonce.ErrUnknown (a value that is not ours).
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

// claimBatch runs the claim script.
func (s *Store) claimBatch(ctx context.Context, items []*claiming) ([]hookonce.Claimed, error) {
	start := time.Now()
	keys := append(make([]string, 0, 3+len(items)), s.keys.outbox(), s.keys.instances(), s.keys.counters())
	args := append(make([]any, 0, 4+3*len(items)), s.o.Instance, s.o.Lease.Milliseconds(), s.o.MaxEvents, s.o.MaxBytes)
	for _, c := range items {
		keys = append(keys, s.keys.claim(c.key))
		args = append(args, c.value, c.ttl, c.event)
	}
	answers, err := claimScript.Run(ctx, s.client, keys, args...).Slice()
	s.o.Metrics.Claim.WithLabelValues("redis").Observe(time.Since(start).Seconds())
	if err = s.unknown(err); err != nil {
		return nil, err
	}
	if len(answers) != len(items) {
		return nil, fmt.Errorf("%w: %d answers to %d claims", hookonce.ErrUnknown, len(answers), len(items))
	}
	out := make([]hookonce.Claimed, len(items))
	for i, c := range items {
		out[i] = c.read(answers[i])
		if errors.Is(out[i].Err, errForeign) {
			s.o.Logger.WarnContext(ctx, "claim state unknown: "+errForeign.Error(), "source", c.key.Source, "key", c.key.Escaped())
		}
	}
	return out, nil
}

// read understands the script's answer to one claim.
func (c *claiming) read(answer any) hookonce.Claimed {
	fields, _ := answer.([]any)
	text := func(i int) string {
		if i >= len(fields) {
			return ""
		}
		s, _ := fields[i].(string)
		return s
	}
	switch text(0) {
	case "n":
		id, err := parseID(text(1))
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
		return unknownItem(errForeign)
	case "d", "o":
		out, err := unpack(c.key, text(1))
		if err != nil {
			return unknownItem(err)
		}
		out.Outcome = hookonce.Duplicate
		if text(0) == "d" {
			return out
		}
		out.Outcome = hookonce.New
		if text(2) == "" {
			return out
		}
		if out.Entry, err = parseID(text(2)); err != nil {
			return unknownItem(err)
		}
		return out
	}
	return unknownItem(fmt.Errorf("the script answered %q", text(0)))
}

func unknownItem(err error) hookonce.Claimed {
	return hookonce.Claimed{Err: fmt.Errorf("%w: %w", hookonce.ErrUnknown, err)}
}

package hybrid

import (
	"context"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
)

// ClaimOne claims one key; see [Store.Claim].
func (s *Store) ClaimOne(ctx context.Context, c hookonce.Claim) (hookonce.Claimed, error) {
	if out, ok := s.marked(ctx, []hookonce.Claim{c})[0].claimed(); ok {
		return out, nil
	}
	out, err := s.Claims.ClaimOne(ctx, c)
	if err == nil {
		s.remember(c, out)
	}
	return out, err
}

// Claim answers what has a mark, and lets the other store decide the rest; its
// answers, errors included, are that store's.
func (s *Store) Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error) {
	out := make([]hookonce.Claimed, len(claims))
	var rest []hookonce.Claim
	var at []int
	for i, m := range s.marked(ctx, claims) {
		var ok bool
		if out[i], ok = m.claimed(); !ok {
			rest, at = append(rest, claims[i]), append(at, i)
		}
	}
	if len(rest) > 0 {
		got, err := s.Claims.Claim(ctx, rest)
		if err != nil {
			return nil, err
		}
		for i, c := range got {
			s.remember(rest[i], c)
			out[at[i]] = c
		}
	}
	entry.MarkRepeats(claims, out)
	return out, nil
}

// Settle removes entries; see [publisher.Outbox]. Their keys are marked: the
// broker has confirmed them, or Settle would not be called.
func (s *Store) Settle(ctx context.Context, entries []hookonce.Entry) error {
	if err := s.Claims.Settle(ctx, entries); err != nil {
		return err
	}
	s.put(ctx, s.kept.take(entries))
	return nil
}

// keysOf are the keys that a claim takes together.
func keysOf(c hookonce.Claim) []hookonce.Key {
	return append([]hookonce.Key{c.Claimed()}, c.Previous...)
}

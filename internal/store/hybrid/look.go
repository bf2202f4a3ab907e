package hybrid

import (
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
)

// look is one caller's share of a round trip.
type look struct{ keys []hookonce.Key }

// found is a mark that answers a claim; nil: none does.
type found struct {
	mark  *mark
	claim hookonce.Claim
}

// claimed is the answer, if there is one.
func (f found) claimed() (hookonce.Claimed, bool) {
	if f.mark == nil {
		return hookonce.Claimed{}, false
	}
	out := hookonce.Claimed{
		Outcome: hookonce.Duplicate, Key: f.mark.event, First: f.mark.first,
		FirstSeen: f.mark.firstSeen, Fingerprint: f.mark.fingerprint,
	}
	if f.mark.token == f.claim.Token {
		out.Outcome = hookonce.New // settled, so without an entry
	}
	return out, true
}

// marked looks for marks of the claims' keys. Whatever goes wrong means that
// there are none.
func (s *Store) marked(ctx context.Context, claims []hookonce.Claim) []found {
	out := make([]found, len(claims))
	if time.Now().UnixNano() < s.until.Load() {
		return out
	}
	l := &look{keys: make([]hookonce.Key, 0, len(claims))}
	var of []int
	for i, c := range claims {
		if entry.Check(c) != nil {
			continue // to be refused
		}
		for _, k := range keysOf(c) {
			l.keys, of = append(l.keys, k), append(of, i)
		}
	}
	if len(l.keys) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	values, err := s.looks.Do(ctx, l)
	if err != nil {
		return out
	}
	now := s.o.Now()
	for j, v := range values {
		i := of[j]
		if m, ok := unpack(l.keys[j], v); ok && out[i].mark == nil && m.expires.After(now) {
			out[i] = found{m, claims[i]}
		}
	}
	return out
}

// get reads the marks of several callers in one round trip.
func (s *Store) get(ctx context.Context, looks []*look) ([][][]byte, error) {
	var keys []hookonce.Key
	for _, l := range looks {
		keys = append(keys, l.keys...)
	}
	values, err := s.o.Marks.Get(ctx, keys)
	s.note(ctx, err)
	if err != nil {
		return nil, err
	}
	out := make([][][]byte, len(looks))
	for i, l := range looks {
		out[i], values = values[:len(l.keys)], values[len(l.keys):]
	}
	return out, nil
}

// put writes marks, or does not.
func (s *Store) put(ctx context.Context, marks []keyed) {
	if len(marks) == 0 || time.Now().UnixNano() < s.until.Load() {
		return
	}
	now := s.o.Now()
	var keys []hookonce.Key
	var values [][]byte
	var ttls []time.Duration
	for _, m := range marks {
		ttl := m.mark.expires.Sub(now)
		if ttl <= 0 {
			continue
		}
		for _, k := range m.keys {
			keys, values, ttls = append(keys, k), append(values, m.mark.pack(k)), append(ttls, ttl)
		}
	}
	if len(keys) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
	defer cancel()
	s.note(ctx, s.o.Marks.Put(ctx, keys, values, ttls))
}

// note leaves Redis alone for a while after a fault.
func (s *Store) note(ctx context.Context, err error) {
	up := s.o.Metrics.StoreUp.WithLabelValues("redis")
	switch {
	case err == nil:
		up.Set(1)
		if s.down.CompareAndSwap(true, false) {
			s.o.Logger.InfoContext(ctx, "redis answers again: repeats are answered from it")
		}
	case errors.Is(err, context.Canceled):
	default:
		up.Set(0)
		s.until.Store(time.Now().Add(s.o.Pause).UnixNano())
		if s.down.CompareAndSwap(false, true) {
			s.o.Logger.WarnContext(ctx, "redis does not answer: nothing is lost, but Postgres answers every repeat", "err", err)
		}
	}
}

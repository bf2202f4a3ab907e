package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/store/entry"
)

// ClaimOne claims one key. Calls that wait at the same moment share a
// transaction. The error is the item's own ([hookonce.Claimed.Err]) or the
// store's; see [Store.Claim].
func (s *Store) ClaimOne(ctx context.Context, c hookonce.Claim) (hookonce.Claimed, error) {
	out, err := s.Claim(ctx, []hookonce.Claim{c})
	if err != nil {
		return hookonce.Claimed{}, err
	}
	return out[0], out[0].Err
}

// Claim claims keys and puts the events of the new ones into the outbox or the
// queue, in one transaction. Of a key that the batch repeats, the first is New
// and the others are its duplicates.
//
// An error means that the state of all of them is unknown and wraps
// hookonce.ErrUnknown; repeat the call with the same tokens. What concerns one
// item is in its Err: hookonce.ErrInvalid, hookonce.ErrOutboxFull, or
// hookonce.ErrUnknown.
func (s *Store) Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error) {
	start := time.Now()
	tries := make([]claiming, len(claims))
	var parts []part
	var tried []*claiming
	size := 0
	for i, c := range claims {
		try := &tries[i]
		try.claim = c
		if err := entry.Check(c); err != nil {
			try.result.Err = err
			continue
		}
		size += entry.Size(c.Event)
		parts, tried = append(parts, try.run), append(tried, try)
	}
	if len(parts) > 0 {
		errs, err := s.write(ctx, size, parts...)
		s.o.Metrics.Claim.WithLabelValues("sqlite").Observe(time.Since(start).Seconds())
		if err != nil {
			return nil, err
		}
		for i, err := range errs {
			if err != nil {
				tried[i].result = hookonce.Claimed{Err: err}
			}
		}
	}
	out := make([]hookonce.Claimed, len(claims))
	for i := range tries {
		out[i] = tries[i].result
	}
	entry.MarkRepeats(claims, out)
	return out, nil
}

// claiming is one claim of a batch on its way.
type claiming struct {
	claim  hookonce.Claim
	result hookonce.Claimed
}

// row is a claim as it is stored.
type row struct {
	id                 int64
	lookup, eventKey   []byte
	token, fingerprint []byte
	firstSeen, expires int64
	status             int
	answer             []byte
	entry              int64
}

// run looks the claim's key and its previous keys up: the first one in force
// decides. When none is, all of them are taken.
func (p *claiming) run(ctx context.Context, t *txn) error {
	now := t.s.o.Now().UnixMilli()
	var expired []int64
	for _, key := range p.keys() {
		r, err := find(ctx, t, key)
		switch {
		case err != nil:
			return err
		case r.id == 0:
		case string(r.lookup) != key.String():
			p.result = hookonce.Claimed{Err: fmt.Errorf("%w: another key has the same digest", hookonce.ErrUnknown)}
			return nil
		case r.expires > now:
			p.result, err = p.known(ctx, t, key, r)
			return err
		default:
			expired = append(expired, r.id)
		}
	}
	var err error
	p.result, err = p.take(ctx, t, expired, now)
	return err
}

// keys are all that are claimed together, each once; the key itself is the first.
func (p *claiming) keys() []hookonce.Key {
	keys := append(make([]hookonce.Key, 0, 1+len(p.claim.Previous)), p.claim.Claimed())
	for _, k := range p.claim.Previous {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// find reads the claim of a key; its id is 0 when there is none.
func find(ctx context.Context, t *txn, key hookonce.Key) (r row, err error) {
	digest := key.Digest()
	err = t.stmt(ctx, sqlFindClaim).QueryRowContext(ctx, digest[:]).Scan(&r.id, &r.lookup, &r.eventKey,
		&r.token, &r.fingerprint, &r.firstSeen, &r.status, &r.answer, &r.entry, &r.expires)
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, nil
	}
	return r, err
}

// known answers a claim whose key is taken: by an earlier try with the same
// token, or by another delivery.
func (p *claiming) known(ctx context.Context, t *txn, key hookonce.Key, r row) (hookonce.Claimed, error) {
	if r.eventKey != nil {
		source, id, ok := bytes.Cut(r.eventKey, []byte("/"))
		if !ok {
			return hookonce.Claimed{Err: fmt.Errorf("%w: the stored claim is unreadable", hookonce.ErrUnknown)}, nil
		}
		key = hookonce.Key{Source: string(source), ID: string(id)}
	}
	out := hookonce.Claimed{
		Outcome: hookonce.Duplicate, Key: key,
		First:     hookonce.Answer{Status: r.status, Body: string(r.answer)},
		FirstSeen: time.UnixMilli(r.firstSeen).UTC(),
	}
	copy(out.Fingerprint[:], r.fingerprint)
	if !bytes.Equal(r.token, p.claim.Token[:]) {
		return out, nil
	}
	out.Outcome = hookonce.New
	if r.entry == 0 {
		return out, nil
	}
	var pending int
	if err := t.stmt(ctx, sqlHasEntry).QueryRowContext(ctx, r.entry).Scan(&pending); err != nil {
		return hookonce.Claimed{}, err
	}
	if pending > 0 {
		out.Entry = hookonce.EntryID{Lo: uint64(r.entry)}
	}
	return out, nil
}

// take claims the keys, which are free; expired are rows of their former claims.
func (p *claiming) take(ctx context.Context, t *txn, expired []int64, now int64) (hookonce.Claimed, error) {
	c := p.claim
	id, err := t.accept(ctx, c.Event, now)
	if errors.Is(err, hookonce.ErrOutboxFull) {
		return hookonce.Claimed{Err: err}, nil
	}
	if err != nil {
		return hookonce.Claimed{}, err
	}
	for _, row := range expired {
		if _, err := t.exec(ctx, sqlDropClaim, row); err != nil {
			return hookonce.Claimed{}, err
		}
	}
	for _, key := range p.keys() {
		var eventKey []byte // null when the same
		if key != c.Event.Key {
			eventKey = []byte(c.Event.Key.String())
		}
		digest := key.Digest()
		_, err = t.exec(ctx, sqlAddClaim, digest[:], []byte(key.String()), eventKey, c.Token[:], c.Fingerprint[:],
			now, c.Answer.Status, []byte(c.Answer.Body), id, now+c.TTL.Milliseconds())
		if err != nil {
			return hookonce.Claimed{}, err
		}
	}
	return hookonce.Claimed{
		Outcome: hookonce.New, Entry: hookonce.EntryID{Lo: uint64(id)}, Key: c.Event.Key,
		First: c.Answer, FirstSeen: time.UnixMilli(now).UTC(), Fingerprint: c.Fingerprint,
	}, nil
}

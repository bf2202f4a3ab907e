package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
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

func (p *claiming) run(ctx context.Context, t *txn) error {
	now := t.s.o.Now().UnixMilli()
	key := p.claim.Claimed()
	digest := key.Digest()
	var r row
	err := t.stmt(ctx, sqlFindClaim).QueryRowContext(ctx, digest[:]).Scan(&r.id, &r.lookup, &r.eventKey,
		&r.token, &r.fingerprint, &r.firstSeen, &r.status, &r.answer, &r.entry, &r.expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		r.id = 0
	case err != nil:
		return err
	case string(r.lookup) != key.String():
		p.result = hookonce.Claimed{Err: fmt.Errorf("%w: another key has the same digest", hookonce.ErrUnknown)}
		return nil
	case r.expires > now:
		p.result, err = p.known(ctx, t, r)
		return err
	}
	p.result, err = p.take(ctx, t, r.id, digest, now)
	return err
}

// known answers a claim whose key is taken: by an earlier try with the same
// token, or by another delivery.
func (p *claiming) known(ctx context.Context, t *txn, r row) (hookonce.Claimed, error) {
	key := p.claim.Claimed()
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

// take claims a free key; expired is the row of its former claim, or 0.
func (p *claiming) take(ctx context.Context, t *txn, expired int64, digest [16]byte, now int64) (hookonce.Claimed, error) {
	c := p.claim
	id, err := t.accept(ctx, c.Event, now)
	if errors.Is(err, hookonce.ErrOutboxFull) {
		return hookonce.Claimed{Err: err}, nil
	}
	if err != nil {
		return hookonce.Claimed{}, err
	}
	if expired != 0 {
		if _, err := t.exec(ctx, sqlDropClaim, expired); err != nil {
			return hookonce.Claimed{}, err
		}
	}
	var eventKey []byte // null when the same
	if c.Lookup != nil && *c.Lookup != c.Event.Key {
		eventKey = []byte(c.Event.Key.String())
	}
	_, err = t.exec(ctx, sqlAddClaim, digest[:], []byte(c.Claimed().String()), eventKey, c.Token[:], c.Fingerprint[:],
		now, c.Answer.Status, []byte(c.Answer.Body), id, now+c.TTL.Milliseconds())
	if err != nil {
		return hookonce.Claimed{}, err
	}
	return hookonce.Claimed{
		Outcome: hookonce.New, Entry: hookonce.EntryID{Lo: uint64(id)}, Key: c.Event.Key,
		First: c.Answer, FirstSeen: time.UnixMilli(now).UTC(), Fingerprint: c.Fingerprint,
	}, nil
}

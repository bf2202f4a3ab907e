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
	"github.com/hookonce/hookonce/internal/wire"
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
		if err := entry.Check(c); err != nil {
			try.result.Err = err
			continue
		}
		try.prepare(s, c)
		size += len(try.event)
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

// claiming is one claim of a batch on its way. What can be computed before the
// transaction is: only one runs at a time.
type claiming struct {
	claim  hookonce.Claim
	keys   []lookup // all that are claimed together, each once; the key itself is the first
	groups []string // that want the event; nil in the outbox mode
	event  []byte   // as it is stored
	result hookonce.Claimed
}

// lookup is a key under which a claim is found.
type lookup struct {
	hookonce.Key
	text   []byte
	digest [16]byte
}

func (p *claiming) prepare(s *Store, c hookonce.Claim) {
	p.claim = c
	p.keys = make([]lookup, 0, 1+len(c.Previous))
	for i, k := range append([]hookonce.Key{c.Claimed()}, c.Previous...) {
		if i > 0 && slices.ContainsFunc(p.keys, func(l lookup) bool { return l.Key == k }) {
			continue
		}
		p.keys = append(p.keys, lookup{k, []byte(k.String()), k.Digest()})
	}
	if s.o.Route != nil {
		p.event, p.groups = entry.MarshalDelivery(wire.Delivery{Event: c.Event}), s.route(c.Event)
	} else {
		p.event = entry.Marshal(c.Event)
	}
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

// run takes the claim's key at once, unless most claims were duplicates of
// late; where it is taken, or there are previous keys, it looks first.
func (p *claiming) run(ctx context.Context, t *txn) error {
	t.claims++
	now := t.s.o.Now().UnixMilli()
	if len(p.keys) == 1 && !t.s.lookFirst {
		taken, err := p.takeFree(ctx, t, now)
		if taken || err != nil {
			return err
		}
	}
	return p.look(ctx, t, now)
}

// look finds the claim's key and its previous keys: the first one in force
// decides. When none is, all of them are taken.
func (p *claiming) look(ctx context.Context, t *txn, now int64) error {
	var expired []int64
	for i := range p.keys {
		key := &p.keys[i]
		r, err := find(ctx, t, key)
		switch {
		case err != nil:
			return err
		case r.id == 0:
		case !bytes.Equal(r.lookup, key.text):
			p.result = hookonce.Claimed{Err: fmt.Errorf("%w: another key has the same digest", hookonce.ErrUnknown)}
			return nil
		case r.expires > now:
			t.known++
			p.result, err = p.known(ctx, t, key.Key, r)
			return err
		default:
			expired = append(expired, r.id)
		}
	}
	var err error
	p.result, err = p.take(ctx, t, expired, now)
	return err
}

// find reads the claim of a key; its id is 0 when there is none.
func find(ctx context.Context, t *txn, key *lookup) (r row, err error) {
	err = t.stmt(ctx, sqlFindClaim).QueryRowContext(ctx, key.digest[:]).Scan(&r.id, &r.lookup, &r.eventKey,
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
	if err := p.reserve(t); err != nil {
		return hookonce.Claimed{Err: err}, nil
	}
	for _, row := range expired {
		if _, err := t.exec(ctx, sqlDropClaim, row); err != nil {
			return hookonce.Claimed{}, err
		}
	}
	id := p.nextID(t)
	for i := range p.keys {
		if _, err := p.add(ctx, t, sqlAddClaim, &p.keys[i], id, now); err != nil {
			return hookonce.Claimed{}, err
		}
	}
	return p.accepted(id, now), t.accept(ctx, p, id, now)
}

// takeFree claims the only key if nothing is known of it: one statement less
// than to look first. A claim of it, in force or not, is left alone.
func (p *claiming) takeFree(ctx context.Context, t *txn, now int64) (bool, error) {
	before := t.counts
	if p.reserve(t) != nil {
		return false, nil // a duplicate has an answer all the same
	}
	id := p.nextID(t)
	n, err := p.add(ctx, t, sqlTryClaim, &p.keys[0], id, now)
	if err != nil {
		return false, err
	}
	if n == 0 {
		t.counts = before
		return false, nil
	}
	p.result = p.accepted(id, now)
	return true, t.accept(ctx, p, id, now)
}

// add writes the claim of one key, and says how many rows that made.
func (p *claiming) add(ctx context.Context, t *txn, query string, key *lookup, id, now int64) (int64, error) {
	c := &p.claim
	var eventKey []byte // null when the same
	if key.Key != c.Event.Key {
		eventKey = []byte(c.Event.Key.String())
	}
	res, err := t.exec(ctx, query, key.digest[:], key.text, eventKey, c.Token[:], c.Fingerprint[:],
		now, c.Answer.Status, []byte(c.Answer.Body), id, now+c.TTL.Milliseconds())
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// nextID is the id of the outbox entry, should the claim be New; 0 in the
// queue mode. The file has one owner, so its ids are this process's to give;
// one that a transaction gave up is not used again.
func (p *claiming) nextID(t *txn) int64 {
	if p.groups != nil {
		return 0
	}
	t.s.lastEntry++
	return t.s.lastEntry
}

func (p *claiming) accepted(id, now int64) hookonce.Claimed {
	return hookonce.Claimed{
		Outcome: hookonce.New, Entry: hookonce.EntryID{Lo: uint64(id)}, Key: p.claim.Event.Key,
		First: p.claim.Answer, FirstSeen: time.UnixMilli(now).UTC(), Fingerprint: p.claim.Fingerprint,
	}
}

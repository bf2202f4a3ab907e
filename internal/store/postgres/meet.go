package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// fresh is the answer to a claim that has just been made.
func (c *claiming) fresh(me instance) hookonce.Claimed {
	return hookonce.Claimed{
		Outcome: hookonce.New, Entry: me.entry(c.id), Key: c.claim.Event.Key,
		First: c.claim.Answer, FirstSeen: time.UnixMilli(c.now).UTC(), Fingerprint: c.claim.Fingerprint,
	}
}

// repeat answers an item whose key another item of the batch has just claimed.
func (c *claiming) repeat(first *claiming) {
	out := first.out
	if c.claim.Token != first.claim.Token {
		out.Outcome, out.Entry = hookonce.Duplicate, hookonce.EntryID{}
	}
	c.answer(out)
}

// row is a claim as it is stored.
type row struct {
	lookup, eventKey, token, fingerprint, answer []byte
	firstSeen, expires, owner, entry             int64
	status                                       int16
	pending                                      bool // the token is ours, and the entry is still there
}

// find reads the claims of the items' keys, and answers those that are in force.
func (s *Store) find(ctx context.Context, me instance, items []*claiming) error {
	if len(items) == 0 {
		return nil
	}
	var digests, tokens [][]byte
	var asked []*claiming
	for _, c := range items {
		c.place = open
		for i := range c.keys {
			digests, tokens, asked = append(digests, c.keys[i].digest[:]), append(tokens, c.claim.Token[:]), append(asked, c)
		}
	}
	rows, err := s.pool.Query(ctx, s.sql.find, digests, tokens)
	if err != nil {
		return err
	}
	defer rows.Close()
	found := make([]*row, len(asked))
	for rows.Next() {
		var n int64
		var r row
		err := rows.Scan(&n, &r.lookup, &r.eventKey, &r.token, &r.fingerprint, &r.firstSeen, &r.expires, &r.status, &r.answer,
			&r.owner, &r.entry, &r.pending)
		if err != nil {
			return err
		}
		found[n-1] = &r
	}
	if err := rows.Err(); err != nil {
		return err
	}
	n := 0
	for _, c := range items {
		c.meet(found[n:n+len(c.keys)], me)
		n += len(c.keys)
	}
	return nil
}

// meet compares a claim with the stored ones of its keys: the first in force
// decides.
func (c *claiming) meet(found []*row, me instance) {
	for i, r := range found {
		switch {
		case r == nil:
		case r.expires <= c.now:
			c.place = expired
		default:
			c.known(c.keys[i], r, me)
			return
		}
	}
}

// known answers a claim whose key is taken: by an earlier try with the same
// token, or by another delivery.
func (c *claiming) known(k key, r *row, me instance) {
	if string(r.lookup) != k.String() {
		c.fail(fmt.Errorf("%w: %w", hookonce.ErrUnknown, errOtherKey))
		return
	}
	out := hookonce.Claimed{
		Outcome: hookonce.Duplicate, Key: k.Key,
		First:     hookonce.Answer{Status: int(r.status), Body: string(r.answer)},
		FirstSeen: time.UnixMilli(r.firstSeen).UTC(),
	}
	if r.eventKey != nil {
		source, id, ok := bytes.Cut(r.eventKey, []byte("/"))
		if !ok {
			c.fail(fmt.Errorf("%w: %w", hookonce.ErrUnknown, errDamaged))
			return
		}
		out.Key = hookonce.Key{Source: string(source), ID: string(id)}
	}
	if copy(out.Fingerprint[:], r.fingerprint) != len(out.Fingerprint) || r.status < 200 || r.status > 299 {
		c.fail(fmt.Errorf("%w: %w", hookonce.ErrUnknown, errDamaged))
		return
	}
	if bytes.Equal(r.token, c.claim.Token[:]) {
		out.Outcome = hookonce.New
		if r.pending && r.owner == me.id {
			out.Entry = me.entry(r.entry)
		}
	}
	c.answer(out)
}

var (
	// errDamaged says that a row of claims was not written by us.
	errDamaged = errors.New("the stored claim is unreadable")
	// errOtherKey: half of a SHA-256 is the same; it will not happen.
	errOtherKey = errors.New("another key has the same digest")
)

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// arrays are the columns of new claims.
type arrays struct {
	digest, lookup, eventKey, token, fingerprint, answer, event [][]byte
	expires, entry                                              []int64
	status                                                      []int16
}

func newArrays(n int) *arrays {
	cells := make([][]byte, 7*n)
	column := func(i int) [][]byte { return cells[i*n : i*n : (i+1)*n] }
	return &arrays{
		digest: column(0), lookup: column(1), eventKey: column(2), token: column(3), fingerprint: column(4),
		answer: column(5), event: column(6),
		expires: make([]int64, 0, n), entry: make([]int64, 0, n), status: make([]int16, 0, n),
	}
}

func (a *arrays) add(c *claiming) {
	var eventKey []byte // null when the same
	if c.key != c.claim.Event.Key {
		eventKey = []byte(c.claim.Event.Key.String())
	}
	a.digest = append(a.digest, c.digest[:])
	a.lookup = append(a.lookup, []byte(c.key.String()))
	a.eventKey = append(a.eventKey, eventKey)
	a.token = append(a.token, c.claim.Token[:])
	a.fingerprint = append(a.fingerprint, c.claim.Fingerprint[:])
	a.answer = append(a.answer, []byte(c.claim.Answer.Body))
	a.event = append(a.event, c.event)
	a.expires = append(a.expires, c.now+c.claim.TTL.Milliseconds())
	a.entry = append(a.entry, c.id)
	a.status = append(a.status, int16(c.claim.Answer.Status))
}

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
	digests, tokens := make([][]byte, len(items)), make([][]byte, len(items))
	for i, c := range items {
		c.place = open
		digests[i], tokens[i] = c.digest[:], c.claim.Token[:]
	}
	rows, err := s.pool.Query(ctx, s.sql.find, digests, tokens)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var r row
		err := rows.Scan(&n, &r.lookup, &r.eventKey, &r.token, &r.fingerprint, &r.firstSeen, &r.expires, &r.status, &r.answer,
			&r.owner, &r.entry, &r.pending)
		if err != nil {
			return err
		}
		items[n-1].meet(r, me)
	}
	return rows.Err()
}

// meet compares a claim with the stored one of its digest.
func (c *claiming) meet(r row, me instance) {
	if r.expires <= c.now {
		c.place = expired
		return
	}
	if string(r.lookup) != c.key.String() {
		c.fail(fmt.Errorf("%w: %w", hookonce.ErrUnknown, errOtherKey))
		return
	}
	out := hookonce.Claimed{
		Outcome: hookonce.Duplicate, Key: c.key,
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

// errDamaged says that a row of claims was not written by us.
var errDamaged = errors.New("the stored claim is unreadable")

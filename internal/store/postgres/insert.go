package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// insert claims the keys that are left and answers the new ones and their
// repeats. Of items that share a key only the first is tried.
func (s *Store) insert(ctx context.Context, me instance, items []*claiming, again bool) error {
	statement := s.sql.insert
	holder := map[[16]byte]*claiming{}
	var unique []*claiming
	type repeat struct{ item, first *claiming }
	var repeats []repeat
	for _, c := range left(items) {
		if first := c.heldBy(holder); first != nil {
			repeats = append(repeats, repeat{c, first})
			continue
		}
		for _, k := range c.keys {
			holder[k.digest] = c
		}
		unique = append(unique, c)
		if again || c.place == expired {
			statement = s.sql.take
		}
	}
	s.books.RLock()
	defer s.books.RUnlock()
	taken, err := s.take(ctx, statement, me, unique)
	if err != nil {
		if !isConflict(err) && !isData(err) {
			s.books.doubt()
		}
		return err
	}
	var events, bytes int64
	for _, c := range unique {
		if taken[c.id] > 0 {
			events, bytes = events+1, bytes+int64(len(c.event))
			c.answer(c.fresh(me))
		}
	}
	s.books.add(events, bytes)
	for _, r := range repeats {
		if r.first.place == done {
			r.item.repeat(r.first)
		}
	}
	return nil
}

// heldBy is the item of the batch that is to claim one of c's keys.
func (c *claiming) heldBy(holder map[[16]byte]*claiming) *claiming {
	for _, k := range c.keys {
		if h := holder[k.digest]; h != nil {
			return h
		}
	}
	return nil
}

// take runs the claim statement and says how many keys each new entry got. An
// item with several keys gets all of them or none: when it got a part, nothing
// is claimed at all, and the next look at the keys tells who has the others.
func (s *Store) take(ctx context.Context, statement string, me instance, items []*claiming) (map[int64]int, error) {
	a := newArrays(items)
	if len(a.digest) == len(items) {
		return a.exec(ctx, s.pool, statement, me)
	}
	tx, err := s.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback(ctx) //nolint:errcheck // no-op after commit
	taken, err := a.exec(ctx, tx, statement, me)
	if err != nil {
		return nil, err
	}
	for _, c := range items {
		if n := taken[c.id]; n != 0 && n != len(c.keys) {
			return nil, tx.Rollback(ctx)
		}
	}
	return taken, tx.Commit(ctx)
}

// arrays are the columns of new claims, one element a key in the order of the
// digests, and of their entries, one an item.
type arrays struct {
	digest, lookup, eventKey, token, fingerprint, answer [][]byte
	expires, entry                                       []int64
	status                                               []int16
	now                                                  int64
	id                                                   []int64
	event                                                [][]byte
}

func newArrays(items []*claiming) *arrays {
	type part struct {
		c *claiming
		k *key
	}
	parts := make([]part, 0, len(items))
	a := &arrays{now: items[0].now, id: make([]int64, len(items)), event: make([][]byte, len(items))}
	for i, c := range items {
		a.id[i], a.event[i] = c.id, c.event
		for j := range c.keys {
			parts = append(parts, part{c, &c.keys[j]})
		}
	}
	slices.SortFunc(parts, func(x, y part) int { return slices.Compare(x.k.digest[:], y.k.digest[:]) })
	n := len(parts)
	cells := make([][]byte, 6*n)
	for i, column := range []*[][]byte{&a.digest, &a.lookup, &a.eventKey, &a.token, &a.fingerprint, &a.answer} {
		*column = cells[i*n : (i+1)*n : (i+1)*n]
	}
	a.expires, a.entry, a.status = make([]int64, n), make([]int64, n), make([]int16, n)
	for i, p := range parts {
		a.set(i, p.c, p.k)
	}
	return a
}

func (a *arrays) set(i int, c *claiming, k *key) {
	if k.Key != c.claim.Event.Key { // null when the same
		a.eventKey[i] = []byte(c.claim.Event.Key.String())
	}
	a.digest[i], a.lookup[i], a.token[i] = k.digest[:], []byte(k.String()), c.claim.Token[:]
	a.fingerprint[i], a.answer[i] = c.claim.Fingerprint[:], []byte(c.claim.Answer.Body)
	a.expires[i], a.entry[i], a.status[i] = c.now+c.claim.TTL.Milliseconds(), c.id, int16(c.claim.Answer.Status)
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func (a *arrays) exec(ctx context.Context, q querier, statement string, me instance) (map[int64]int, error) {
	rows, err := q.Query(ctx, statement, a.digest, a.lookup, a.eventKey, a.token, a.fingerprint, a.now,
		a.expires, a.status, a.answer, me.id, a.entry, a.id, a.event)
	if err != nil {
		return nil, err
	}
	taken := make(map[int64]int, len(a.id))
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		taken[id]++
		return nil
	})
	return taken, err
}

package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
)

// record writes what the works have come to, for those whose leases are held.
func (a *applying) record(ctx context.Context) error {
	if len(a.recorded) == 0 {
		return nil
	}
	group, now := a.works[a.recorded[0]].Lease.Group, a.b.now()
	held := make(map[hookonce.Token]bool, len(a.recorded))
	for _, last := range []bool{true, false} {
		if err := a.fence(ctx, group, now, last, held); err != nil {
			return err
		}
	}
	var steps []stepRow
	for _, i := range a.recorded {
		w := a.works[i]
		if !held[w.Lease.Token] {
			if w.inside() {
				return &workError{i, ErrLeaseLost} // and what it wrote is rolled back
			}
			a.results[i] = Result{Err: ErrLeaseLost}
			continue
		}
		r := &a.results[i]
		if r.State == "" {
			r.State, r.Detail = w.Step.State, w.Step.Detail
		}
		if r.State == "" {
			r.State = StepDone
		}
		if w.Step.Name == "" {
			continue
		}
		at := w.Step.At
		if at.IsZero() {
			at = now
		}
		steps = append(steps, stepRow{w.Lease, Step{Name: w.Step.Name, State: r.State, At: at, Detail: r.Detail}})
	}
	return a.b.putSteps(ctx, a.tx, group, steps)
}

// fence makes sure that leases are held until the transaction ends, and makes
// the events done whose last step this is. It also moves leases that are half
// used up, so that an effect outside begins with time ahead.
func (a *applying) fence(ctx context.Context, group string, now time.Time, last bool, held map[hookonce.Token]bool) error {
	var digests, tokens [][]byte
	for _, i := range a.recorded {
		l := &a.works[i].Lease
		if a.works[i].Last != last {
			continue
		}
		digest := l.Key.Digest()
		digests, tokens = append(digests, digest[:]), append(tokens, l.Token[:])
	}
	if len(digests) == 0 {
		return nil
	}
	var as args
	if last {
		at := as.add(micros(now))
		return a.b.query(ctx, a.tx, "done", fmt.Sprintf(`UPDATE {p}inbox SET state = '%s', done_at = %s, updated_at = %[2]s WHERE `, Done, at)+
			a.b.heldRows(&as, group, digests, tokens)+` RETURNING token`, as, scanDigests(func(t [16]byte) { held[t] = true }))
	}
	var late [][]byte
	soon := micros(now.Add(a.b.o.Lease / 2))
	err := a.b.query(ctx, a.tx, "fence", `SELECT digest, token, lease_until FROM {p}inbox WHERE `+
		a.b.heldRows(&as, group, digests, tokens)+` ORDER BY digest{wait}`, as, func(rs *sql.Rows) error {
		var digest, token []byte
		var until int64
		if err := rs.Scan(&digest, &token, &until); err != nil {
			return err
		}
		t, err := asDigest(token)
		held[t] = true
		if until < soon {
			late = append(late, digest)
		}
		return err
	})
	if err != nil || len(late) == 0 {
		return err
	}
	as = nil
	until := as.add(micros(now.Add(a.b.o.Lease)))
	_, err = a.b.exec(ctx, a.tx, "renew", `UPDATE {p}inbox SET lease_until = `+until+` WHERE digest `+a.b.d.in(&as, late)+
		` AND grp = `+as.add(group), as...)
	return err
}

// heldRows is the condition that a record is held under one of these leases.
func (b *Inbox) heldRows(a *args, group string, digests, tokens [][]byte) string {
	return `digest ` + b.d.in(a, digests) + ` AND grp = ` + a.add(group) + ` AND token ` + b.d.in(a, tokens) +
		` AND state = '` + string(Running) + `'`
}

// stepRow is a step's record and the lease that writes it.
type stepRow struct {
	l Lease
	s Step
}

// putSteps writes steps' records. Their attempts count the leases that came to
// a step, not the records written.
func (b *Inbox) putSteps(ctx context.Context, q querier, group string, rows []stepRow) error {
	for len(rows) > 0 {
		part := rows[:min(len(rows), b.d.rows)]
		rows = rows[len(part):]
		var digests, tokens [][]byte
		var names, states, details []string
		var runs, ats, firsts []int64
		for i := range part {
			l, s := &part[i].l, part[i].s
			digest, first := l.Key.Digest(), int64(0)
			if s.State == StepStarted {
				first = micros(s.At)
			}
			digests, tokens = append(digests, digest[:]), append(tokens, l.Token[:])
			names, states, details = append(names, clean(s.Name)), append(states, string(s.State)), append(details, errorText(s.Detail))
			runs, ats, firsts = append(runs, int64(l.Run)), append(ats, micros(s.At)), append(firsts, first)
		}
		var a args
		grp := a.add(group)
		_, err := b.exec(ctx, q, "step records", `INSERT INTO {p}steps AS old
			(digest, run, name, state, at, token, detail, first_at, grp, attempts) `+
			b.d.table(&a, grp+", 1", blobs(digests), ints(runs), texts(names), texts(states), ints(ats), blobs(tokens), texts(details), ints(firsts))+
			` ON CONFLICT (digest, grp, run, name) DO UPDATE SET state = excluded.state, at = excluded.at, detail = excluded.detail,
			attempts = CASE WHEN old.token = excluded.token THEN old.attempts ELSE old.attempts + 1 END, token = excluded.token,
			first_at = CASE WHEN old.first_at = 0 THEN excluded.first_at ELSE old.first_at END`, a...)
		if err != nil {
			return err
		}
	}
	return nil
}

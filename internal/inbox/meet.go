package inbox

import (
	"context"
	"database/sql"
	"fmt"
)

// meet decides about events that should have a record, and returns those that
// were taken.
func (s *session) meet(ctx context.Context, openings []*opening) ([]*opening, error) {
	rows, err := s.lockRows(ctx, openings)
	if err != nil {
		return nil, err
	}
	var taken []*opening
	for _, o := range openings {
		r, ok := rows[o.digest]
		if !ok {
			if err := s.absent(ctx, o); err != nil {
				return nil, err
			}
			continue
		}
		ruling := decide(r, o.d, s.now, s.maxCrashes)
		*o.verdict = Verdict{Decision: ruling.decision, Until: ruling.until}
		if ruling.decision != Run && ruling.decision != Crash {
			continue
		}
		if err := s.take(ctx, o, r.state, ruling); err != nil {
			return nil, err
		}
		o.verdict.Lease, o.verdict.Crashes = s.lease(o, ruling.next), ruling.next.crashes
		taken = append(taken, o)
	}
	return taken, nil
}

// absent decides about an event whose row could not be had: locked this
// moment, just removed, or never there.
func (s *session) absent(ctx context.Context, o *opening) error {
	*o.verdict = Verdict{Decision: Wait, Until: s.now.Add(shortWait)}
	if !s.old(o) {
		return nil
	}
	var n int
	err := s.tx.QueryRowContext(ctx, s.b.q(`SELECT count(*) FROM {p}inbox WHERE digest = $1 AND grp = $2`),
		o.digest[:], s.group).Scan(&n)
	if err != nil {
		return fmt.Errorf("inbox: begin: %w", err)
	}
	if n == 0 {
		*o.verdict = Verdict{Decision: Expire}
	}
	return nil
}

func (s *session) lockRows(ctx context.Context, openings []*opening) (map[[16]byte]row, error) {
	var a args
	places := digestPlaces(&a, openings)
	rows := make(map[[16]byte]row, len(openings))
	err := s.b.query(ctx, s.tx, "begin", `SELECT digest, state, lease_until, due, attempt, crashes, generation, run
		FROM {p}inbox WHERE digest IN (`+places+`) AND grp = `+a.add(s.group)+` ORDER BY digest{lock}`, a,
		func(rs *sql.Rows) error {
			var digest []byte
			var state string
			var until, due int64
			var r row
			if err := rs.Scan(&digest, &state, &until, &due, &r.attempt, &r.crashes, &r.generation, &r.run); err != nil {
				return err
			}
			r.state, r.leaseUntil, r.due = State(state), fromMicros(until), fromMicros(due)
			key, err := asDigest(digest)
			rows[key] = r
			return err
		})
	return rows, err
}

// take writes a recorded event's new lease. A dead letter's row goes: its
// event is in the queue again, unacked.
func (s *session) take(ctx context.Context, o *opening, was State, r ruling) error {
	_, err := s.b.exec(ctx, s.tx, "begin", `UPDATE {p}inbox SET state = $1, token = $2, lease_until = $3, due = 0,
		attempt = $4, attempts = attempts + 1, crashes = $5, generation = $6, updated_at = $7, `+fmt.Sprintf(addNote, "$8")+`,
		run = $11 WHERE digest = $9 AND grp = $10`,
		string(Running), o.token[:], micros(s.now.Add(s.b.o.Lease)), r.next.attempt, r.next.crashes, r.next.generation,
		micros(s.now), note(s.now, r.note, r.detail), o.digest[:], s.group, r.next.run)
	if err != nil || was != Dead {
		return err
	}
	_, err = s.b.exec(ctx, s.tx, "begin", `DELETE FROM {p}dead WHERE digest = $1 AND grp = $2`, o.digest[:], s.group)
	return err
}

// loadSteps fills in what earlier attempts of the same run have recorded.
func (s *session) loadSteps(ctx context.Context, openings []*opening) error {
	byDigest := make(map[[16]byte]*Verdict, len(openings))
	for _, o := range openings {
		byDigest[o.digest] = o.verdict
	}
	var a args
	places := digestPlaces(&a, openings)
	return s.b.query(ctx, s.tx, "begin", `SELECT digest, run, `+stepColumns+` FROM {p}steps WHERE digest IN (`+places+`) AND grp = `+a.add(s.group), a, func(rs *sql.Rows) error {
		var digest []byte
		var run int
		step, err := scanStep(rs, &digest, &run)
		if err != nil {
			return err
		}
		key, err := asDigest(digest)
		if err != nil {
			return err
		}
		v := byDigest[key]
		if v == nil || v.Lease.Run != run {
			return nil
		}
		if v.Steps == nil {
			v.Steps = make(map[string]Step)
		}
		v.Steps[step.Name] = step
		return nil
	})
}

func digestPlaces(a *args, openings []*opening) string {
	vs := make([]any, len(openings))
	for i, o := range openings {
		vs[i] = o.digest[:]
	}
	return a.add(vs...)
}

package inbox

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// fenced changes the record of a held lease; [ErrLeaseLost] when it is no
// longer held. set may use the places that a has handed out.
func (b *Inbox) fenced(ctx context.Context, q querier, what string, l Lease, a args, set string) error {
	digest := l.Key.Digest()
	n, err := b.exec(ctx, q, what, `UPDATE {p}inbox SET `+set+` WHERE digest = `+a.add(digest[:])+` AND grp = `+a.add(l.Group)+
		` AND token = `+a.add(l.Token[:])+` AND state = '`+string(Running)+`'`, a...)
	if err != nil {
		return err
	}
	if n == 0 {
		return ErrLeaseLost
	}
	return nil
}

// Renew moves the ends of leases to a whole lease from now. It returns those
// that are lost: their holders must stop.
func (b *Inbox) Renew(ctx context.Context, leases []Lease) (lost []Lease, err error) {
	byGroup := make(map[string][]Lease)
	for _, l := range leases {
		byGroup[l.Group] = append(byGroup[l.Group], l)
	}
	for group, of := range byGroup {
		for part := range slices.Chunk(of, chunk) {
			some, err := b.renew(ctx, group, part)
			if err != nil {
				return lost, err
			}
			lost = append(lost, some...)
		}
	}
	return lost, nil
}

func (b *Inbox) renew(ctx context.Context, group string, leases []Lease) ([]Lease, error) {
	held := make(map[hookonce.Token]bool, len(leases))
	keep := func(rs *sql.Rows) error {
		return scanDigests(func(token [16]byte) { held[token] = true })(rs)
	}
	var a args
	until, now := a.add(micros(b.now().Add(b.o.Lease))), a.add(micros(b.now()))
	err := b.query(ctx, b.db, "renew", `UPDATE {p}inbox SET lease_until = `+until+`, updated_at = `+now+`
		WHERE (digest, grp) IN (SELECT digest, grp FROM {p}inbox WHERE `+heldBy(&a, group, leases)+` ORDER BY digest{lock})
		RETURNING token`, a, keep)
	if err != nil {
		return nil, err
	}
	missing := without(leases, held)
	if len(missing) == 0 {
		return nil, nil
	}
	// A row that another transaction has locked is not lost: it is mostly the
	// holder's own, writing its effect. Whoever else it is shows next time.
	a = nil
	err = b.query(ctx, b.db, "renew", `SELECT token FROM {p}inbox WHERE `+heldBy(&a, group, missing), a, keep)
	if err != nil {
		return nil, err
	}
	return without(missing, held), nil
}

// heldBy is the condition that a record is held under one of these leases.
func heldBy(a *args, group string, leases []Lease) string {
	var digests, tokens []any
	for _, l := range leases {
		digest := l.Key.Digest()
		digests, tokens = append(digests, digest[:]), append(tokens, slices.Clone(l.Token[:]))
	}
	return `digest IN (` + a.add(digests...) + `) AND grp = ` + a.add(group) +
		` AND token IN (` + a.add(tokens...) + `) AND state = '` + string(Running) + `'`
}

func without(leases []Lease, held map[hookonce.Token]bool) []Lease {
	return slices.DeleteFunc(slices.Clone(leases), func(l Lease) bool { return held[l.Token] })
}

// Finish records that all steps of an event are done.
func (b *Inbox) Finish(ctx context.Context, l Lease) error {
	var a args
	now := a.add(micros(b.now()))
	return b.fenced(ctx, b.db, "finish", l, a, fmt.Sprintf(`state = '%s', done_at = %s, updated_at = %[2]s`, Done, now))
}

// Retry ends an attempt that failed: the event may run again from due on. step
// is the record of the failing step, failed when it names no state; without a
// name there is none. cause is the error's text, of which the first 4 KiB are
// kept.
func (b *Inbox) Retry(ctx context.Context, l Lease, step Step, cause string, due time.Time) error {
	return b.tx(ctx, "retry", func(tx *sql.Tx) error {
		now := b.now()
		var a args
		set := fmt.Sprintf(`state = '%s', due = %s, last_error = %s, updated_at = %s, `+addNote, Retrying,
			a.add(micros(due)), a.add(errorText(cause)), a.add(micros(now)),
			a.add(note(now, "failed", fmt.Sprintf("attempt %d: %s", l.Attempt, cause))))
		if err := b.fenced(ctx, tx, "retry", l, a, set); err != nil {
			return err
		}
		return b.putFailed(ctx, tx, l, step, cause)
	})
}

// putFailed records the step that an attempt ended at.
func (b *Inbox) putFailed(ctx context.Context, tx *sql.Tx, l Lease, step Step, cause string) error {
	if step.Name == "" {
		return nil
	}
	step.State = cmp.Or(step.State, StepFailed)
	step.Detail = cmp.Or(step.Detail, cause)
	step.At = b.now()
	return b.putSteps(ctx, tx, l.Group, []stepRow{{l, step}})
}

// Release gives an event back, as if this attempt had not been: for a consumer
// that stops, and for an event that has to wait for another one until then.
func (b *Inbox) Release(ctx context.Context, l Lease, until time.Time) error {
	var a args
	now, due := a.add(micros(b.now())), a.add(micros(until))
	return b.fenced(ctx, b.db, "release", l, a, fmt.Sprintf(`state = '%s', due = %s, updated_at = %s,
		attempt = attempt - 1, attempts = attempts - 1`, Retrying, due, now))
}

package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Step runs fn and records the step in one transaction: exactly one of the
// event's attempts can commit it. Before fn it makes sure that the lease is
// still held, and locks the record, so that nobody takes the event over while
// fn writes. The last step also makes the event done. fn may be nil.
//
// An error of fn rolls everything back and is returned as it is; fn must
// neither commit nor roll back. After any error the step may count as not
// done, with one exception: when the answer to the commit was lost, the next
// Begin tells.
func (b *Inbox) Step(ctx context.Context, l Lease, s Step, last bool, fn func(ctx context.Context, tx *sql.Tx) error) error {
	return b.tx(ctx, "step", func(tx *sql.Tx) error {
		if err := b.hold(ctx, tx, l); err != nil {
			return err
		}
		if fn != nil {
			if err := fn(ctx, tx); err != nil {
				return err
			}
		}
		if s.State == "" {
			s.State = StepDone
		}
		if err := b.putStep(ctx, tx, l, s, overwrite); err != nil {
			return err
		}
		if !last {
			return nil
		}
		return b.finish(ctx, tx, l)
	})
}

// Mark records a step whose effect is outside the database: started before it
// is tried, done, failed or skipped after. Each Mark also renews the lease, so
// that an effect begins with a whole lease ahead.
func (b *Inbox) Mark(ctx context.Context, l Lease, s Step) error {
	return b.tx(ctx, "mark", func(tx *sql.Tx) error {
		var a args
		now := b.now()
		if err := b.fenced(ctx, tx, "mark", l, a, fmt.Sprintf(`lease_until = %s, updated_at = %s`,
			a.add(micros(now.Add(b.o.Lease))), a.add(micros(now)))); err != nil {
			return err
		}
		return b.putStep(ctx, tx, l, s, overwrite)
	})
}

// hold locks the record of a held lease until the transaction's end. It only
// reads: behind a changed row, and not behind a locked one, the inserts of
// other deliveries' Begin would wait until the effect is through.
func (b *Inbox) hold(ctx context.Context, tx *sql.Tx, l Lease) error {
	digest := l.Key.Digest()
	var one int
	err := tx.QueryRowContext(ctx, b.q(`SELECT 1 FROM {p}inbox WHERE digest = $1 AND grp = $2 AND token = $3 AND state = $4{wait}`),
		digest[:], l.Group, l.Token[:], string(Running)).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return ErrLeaseLost
	}
	if err != nil {
		return fmt.Errorf("inbox: fence: %w", err)
	}
	return nil
}

// When an existing step record gives way to a new one.
const (
	overwrite = `true`
	// onlyFailed keeps what is known of an outside effect: one that was started
	// and has no end stays started, whatever failed around it.
	onlyFailed = `old.state = '` + string(StepFailed) + `'`
)

// putStep writes a step's record. Its attempts count the leases that came to
// it, not the records written.
func (b *Inbox) putStep(ctx context.Context, tx *sql.Tx, l Lease, s Step, when string) error {
	digest := l.Key.Digest()
	at := s.At
	if at.IsZero() {
		at = b.now()
	}
	_, err := b.exec(ctx, tx, "step record", `INSERT INTO {p}steps AS old (digest, grp, run, name, state, attempts, at, token, detail)
		VALUES ($1, $2, $3, $4, $5, 1, $6, $7, $8)
		ON CONFLICT (digest, grp, run, name) DO UPDATE SET state = excluded.state, at = excluded.at, detail = excluded.detail,
		attempts = CASE WHEN old.token = excluded.token THEN old.attempts ELSE old.attempts + 1 END, token = excluded.token
		WHERE `+when, digest[:], l.Group, l.Run, clean(s.Name), string(s.State), micros(at), l.Token[:], errorText(s.Detail))
	return err
}

// putFailed records a failed step; none when step is empty.
func (b *Inbox) putFailed(ctx context.Context, tx *sql.Tx, l Lease, step, cause string) error {
	if step == "" {
		return nil
	}
	return b.putStep(ctx, tx, l, Step{Name: step, State: StepFailed, Detail: cause}, onlyFailed)
}

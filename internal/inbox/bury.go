package inbox

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
)

// Bury makes a held event a dead letter, in one transaction with the end of
// its lease. The letter's event, reason, step and error count; group, key,
// generation, run and, where it is zero, the number of attempts are the
// lease's, and DeadAt is now.
func (b *Inbox) Bury(ctx context.Context, l Lease, letter Letter) error {
	now := b.now()
	letter.Group, letter.Event.Key = l.Group, l.Key
	letter.Generation, letter.Run, letter.DeadAt = l.Generation, l.Run, now
	letter.Attempts = cmp.Or(letter.Attempts, l.Attempt)
	return b.tx(ctx, "bury", func(tx *sql.Tx) error {
		var a args
		set := fmt.Sprintf(`state = '%s', due = 0, last_error = %s, updated_at = %s, `+addNote, Dead,
			a.add(errorText(letter.Error)), a.add(micros(now)), a.add(letter.note()))
		if err := b.fenced(ctx, tx, "bury", l, a, set); err != nil {
			return err
		}
		if err := b.putFailed(ctx, tx, l, Step{Name: letter.Step, State: letter.StepState}, letter.Error); err != nil {
			return err
		}
		return b.putLetter(ctx, tx, letter)
	})
}

// Park makes an event a dead letter that nobody holds: one that is unreadable,
// expired, unrouted, or set aside by the receiver. A record of the event is
// set back to dead, and a lease on it is lost. Only an event that is done,
// discarded or purged stays so: Park then writes nothing and returns false.
//
// In the group "-" done means no more than "sent on": an event that comes back
// from there is dead again, and of a higher generation, so that whoever sent
// it on cannot take this new letter for the one it knew.
func (b *Inbox) Park(ctx context.Context, letter Letter) (bool, error) {
	letter.Event.Key = parkedKey(letter.Event)
	parked := false
	err := b.tx(ctx, "park", func(tx *sql.Tx) error {
		parked = false
		now := b.now()
		letter.DeadAt = now
		if letter.Event.ReceivedAt.IsZero() {
			letter.Event.ReceivedAt = now
		}
		fresh, err := b.insertDead(ctx, tx, letter)
		if err != nil {
			return err
		}
		if !fresh {
			again, ok, err := b.setBack(ctx, tx, letter)
			if err != nil || !ok {
				return err
			}
			letter = again
		}
		parked = true
		return b.putLetter(ctx, tx, letter)
	})
	return parked, err
}

// parkedKey is the event's key, or "!" and the hash of its body.
func parkedKey(e hookonce.Event) hookonce.Key {
	k := e.Key
	if k.Source == "" {
		k.Source = "-"
	}
	if k.ID == "" {
		sum := sha256.Sum256(e.Body)
		k.ID = "!" + hex.EncodeToString(sum[:])
	}
	return k
}

// insertDead records an event that has no record as dead.
func (b *Inbox) insertDead(ctx context.Context, tx *sql.Tx, l Letter) (bool, error) {
	digest := l.Event.Key.Digest()
	n, err := b.exec(ctx, tx, "park", `INSERT INTO {p}inbox (digest, grp, source, key, type, type_raw, state, token,
		attempt, attempts, generation, run, received_at, updated_at, last_error, notes)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT DO NOTHING`,
		digest[:], l.Group, clean(l.Event.Key.Source), []byte(l.Event.Key.String()), hookonce.EscapeType(l.Event.Type),
		rawType(l.Event.Type), string(Dead), []byte{}, l.Attempts, l.Generation, l.Run, micros(l.Event.ReceivedAt),
		micros(l.DeadAt), errorText(l.Error), l.note())
	return n > 0, err
}

// setBack makes a recorded event dead, if it may, and returns the letter with
// what the record knows better.
func (b *Inbox) setBack(ctx context.Context, tx *sql.Tx, l Letter) (Letter, bool, error) {
	digest := l.Event.Key.Digest()
	dones := fmt.Sprintf(`'%s', '%s', '%s'`, Done, Discarded, Purged)
	bump := 0
	if l.Group == queue.Unrouted {
		dones = fmt.Sprintf(`'%s', '%s'`, Discarded, Purged)
		bump = 1
	}
	var generation, run, attempt int
	err := tx.QueryRowContext(ctx, b.q(`UPDATE {p}inbox SET state = $1, done_at = 0, due = 0, lease_until = 0, last_error = $2,
		updated_at = $3, `+fmt.Sprintf(addNote, "$4")+`,
		generation = CASE WHEN generation < $5 THEN CAST($5 AS integer) ELSE generation + CAST($6 AS integer) END
		WHERE digest = $7 AND grp = $8 AND state NOT IN (`+dones+`) RETURNING generation, run, attempt`),
		string(Dead), errorText(l.Error), micros(l.DeadAt), l.note(), l.Generation, bump, digest[:], l.Group).
		Scan(&generation, &run, &attempt)
	if errors.Is(err, sql.ErrNoRows) {
		return l, false, nil
	}
	if err != nil {
		return l, false, fmt.Errorf("inbox: park: %w", err)
	}
	l.Generation, l.Run, l.Attempts = generation, run, cmp.Or(l.Attempts, attempt)
	return l, true, nil
}

// putLetter writes the row with everything that a replay needs.
func (b *Inbox) putLetter(ctx context.Context, tx *sql.Tx, l Letter) error {
	headers, err := json.Marshal(l.Event.Header)
	if err != nil {
		return fmt.Errorf("inbox: dead letter's headers: %w", err)
	}
	e, digest, text := l.Event, l.Event.Key.Digest(), errorText(l.Error)
	received := e.ReceivedAt
	if received.IsZero() {
		received = l.DeadAt
	}
	_, err = b.exec(ctx, tx, "dead letter", `INSERT INTO {p}dead (digest, grp, source, key, type, type_raw, content_type, body,
		headers, context, traceparent, unmatched, parked, received_at, reason, step, error, error_print, attempts, generation,
		run, dead_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)
		ON CONFLICT (digest, grp) DO UPDATE SET type = excluded.type, type_raw = excluded.type_raw,
		content_type = excluded.content_type, body = excluded.body, headers = excluded.headers, context = excluded.context,
		traceparent = excluded.traceparent, unmatched = excluded.unmatched, parked = excluded.parked,
		received_at = excluded.received_at, reason = excluded.reason, step = excluded.step, error = excluded.error,
		error_print = excluded.error_print, attempts = excluded.attempts, generation = excluded.generation,
		run = excluded.run, dead_at = excluded.dead_at`,
		digest[:], l.Group, clean(e.Key.Source), []byte(e.Key.String()), hookonce.EscapeType(e.Type), rawType(e.Type),
		[]byte(e.ContentType), blob(e.Body), string(headers), blob(e.Context), []byte(e.TraceParent), clean(e.Unmatched),
		clean(e.Parked), micros(received), string(l.Reason), clean(l.Step), text, fingerprint(text), l.Attempts,
		l.Generation, l.Run, micros(l.DeadAt))
	return err
}

// note is the letter's line in the timeline.
func (l Letter) note() string {
	return note(l.DeadAt, "dead", string(l.Reason)+": "+l.Error)
}

package inbox

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
)

// MarkReplayed records that a dead letter was sent to its group again, as this
// generation: it is retrying and no dead letter any more. Call it once the
// event is durably in the queue, with the run that it was sent with. false means that the event was not dead at
// the generation before: the delivery came first, another replay did it, or it
// was discarded.
//
// An event of the group "-" is done for that group: it was sent on to those
// that match it now.
func (b *Inbox) MarkReplayed(ctx context.Context, group string, key hookonce.Key, generation, run int) (bool, error) {
	now := b.now()
	state, doneAt := Retrying, int64(0)
	if group == queue.Unrouted {
		state, doneAt = Done, micros(now)
	}
	return b.leaveDead(ctx, "mark replayed", group, key, &generation, func(a *args) string {
		return fmt.Sprintf(`state = '%s', done_at = %s, generation = %s, run = %s, attempt = 0, crashes = 0, due = %s, updated_at = %[5]s, `+addNote,
			state, a.add(doneAt), a.add(generation), a.add(run), a.add(micros(now)), a.add(note(now, "replayed", generationText(generation))))
	})
}

// Discard gives a dead letter up for good, with a person's reason. false means
// that the event is not dead.
func (b *Inbox) Discard(ctx context.Context, group string, key hookonce.Key, reason string) (bool, error) {
	now := b.now()
	return b.leaveDead(ctx, "discard", group, key, nil, func(a *args) string {
		return fmt.Sprintf(`state = '%s', done_at = %s, updated_at = %[2]s, `+addNote,
			Discarded, a.add(micros(now)), a.add(note(now, "discarded", reason)))
	})
}

// leaveDead moves an event out of the dead letters: only one that is dead, and,
// when a next generation is given, at the one before.
func (b *Inbox) leaveDead(ctx context.Context, what, group string, key hookonce.Key, next *int, set func(a *args) string) (bool, error) {
	digest := key.Digest()
	moved := false
	err := b.tx(ctx, what, func(tx *sql.Tx) error {
		var a args
		statement := `UPDATE {p}inbox SET ` + set(&a) + ` WHERE digest = ` + a.add(digest[:]) + ` AND grp = ` + a.add(group) +
			` AND state = '` + string(Dead) + `'`
		if next != nil {
			statement += ` AND generation = ` + a.add(*next-1)
		}
		n, err := b.exec(ctx, tx, what, statement, a...)
		if err != nil || n == 0 {
			return err
		}
		moved = true
		_, err = b.exec(ctx, tx, what, `DELETE FROM {p}dead WHERE digest = $1 AND grp = $2`, digest[:], group)
		return err
	})
	return moved && err == nil, err
}

package inbox

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
)

// Replay is a dead letter that was sent to its group again.
type Replay struct {
	Group string
	Key   hookonce.Key
	// Generation and Run are what it was sent with.
	Generation, Run int
}

// MarkReplayed records that dead letters were sent to their groups again, each
// as a generation: they are retrying and no dead letters any more. Call it once
// the events are durably in the queue. false means that an event was not dead
// at the generation before: the delivery came first, another replay did it, or
// it was discarded.
//
// An event of the group "-" is done for that group: it was sent on to those
// that match it now.
func (b *Inbox) MarkReplayed(ctx context.Context, replays ...Replay) ([]bool, error) {
	now := b.now()
	leaving := make([]leaving, len(replays))
	for i, r := range replays {
		state, doneAt := Retrying, int64(0)
		if r.Group == queue.Unrouted {
			state, doneAt = Done, micros(now)
		}
		leaving[i] = makeLeaving(r.Group, r.Key, func(a *args) string {
			return fmt.Sprintf(`state = '%s', done_at = %s, generation = %s, run = %s, attempt = 0, crashes = 0, due = %s, updated_at = %[5]s, `+addNote,
				state, a.add(doneAt), a.add(r.Generation), a.add(r.Run), a.add(micros(now)), a.add(note(now, "replayed", generationText(r.Generation))))
		})
		leaving[i].generation = &r.Generation
	}
	return b.leaveDead(ctx, "mark replayed", leaving)
}

// Target names a dead letter.
type Target struct {
	Group string
	Key   hookonce.Key
}

// Discard gives dead letters up for good, with a person's reason. false means
// that an event is not dead.
func (b *Inbox) Discard(ctx context.Context, reason string, targets ...Target) ([]bool, error) {
	now := b.now()
	leaving := make([]leaving, len(targets))
	for i, t := range targets {
		leaving[i] = makeLeaving(t.Group, t.Key, func(a *args) string {
			return fmt.Sprintf(`state = '%s', done_at = %s, updated_at = %[2]s, `+addNote,
				Discarded, a.add(micros(now)), a.add(note(now, "discarded", reason)))
		})
	}
	return b.leaveDead(ctx, "discard", leaving)
}

// leaving is an event on its way out of the dead letters.
type leaving struct {
	group      string
	digest     [16]byte
	set        func(a *args) string
	generation *int // the next one, when it must be dead at the one before
}

func makeLeaving(group string, key hookonce.Key, set func(a *args) string) leaving {
	return leaving{group: group, digest: key.Digest(), set: set}
}

// leaveDead moves events out of the dead letters, all in one transaction: only
// those that are dead, and, where a next generation is given, at the one before.
func (b *Inbox) leaveDead(ctx context.Context, what string, all []leaving) ([]bool, error) {
	order := make([]int, len(all)) // as Begin meets them, so that neither waits for the other
	for i := range all {
		order[i] = i
	}
	slices.SortFunc(order, func(x, y int) int { return bytes.Compare(all[x].digest[:], all[y].digest[:]) })
	const tries = 3
	for try := 1; ; try++ {
		moved := make([]bool, len(all))
		err := b.tx(ctx, what, func(tx *sql.Tx) error {
			for _, i := range order {
				ok, err := b.leaveOne(ctx, tx, what, all[i])
				if err != nil {
					return err
				}
				moved[i] = ok
			}
			return nil
		})
		if err == nil {
			return moved, nil
		}
		if try == tries || !deadlocked(err) {
			return nil, err
		}
	}
}

func (b *Inbox) leaveOne(ctx context.Context, tx *sql.Tx, what string, l leaving) (bool, error) {
	var a args
	statement := `UPDATE {p}inbox SET ` + l.set(&a) + ` WHERE digest = ` + a.add(l.digest[:]) + ` AND grp = ` + a.add(l.group) +
		` AND state = '` + string(Dead) + `'`
	if l.generation != nil {
		statement += ` AND generation = ` + a.add(*l.generation-1)
	}
	n, err := b.exec(ctx, tx, what, statement, a...)
	if err != nil || n == 0 {
		return false, err
	}
	_, err = b.exec(ctx, tx, what, `DELETE FROM {p}dead WHERE digest = $1 AND grp = $2`, l.digest[:], l.group)
	return err == nil, err
}

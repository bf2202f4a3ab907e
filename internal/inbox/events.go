package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
)

const recordColumns = `digest, grp, key, type, type_raw, state, received_at, attempts, generation, last_error, updated_at`

// Events lists records, those received last in front, at most n at a time: one
// for each group of an event. Go on with the cursor until it is empty, which it
// may be beside the last records. Since (inclusive) and Until (exclusive) mean
// the time of receipt. Events of group "-" that were sent on
// are left out.
func (b *Inbox) Events(ctx context.Context, f Filter, after Cursor, n int) ([]Record, Cursor, error) {
	wants, err := typeMatcher(f.Type)
	if err != nil {
		return nil, "", err
	}
	var records []Record
	for {
		w := b.eventsWhere(f)
		if err := w.after(after, "received_at", "<"); err != nil {
			return nil, "", err
		}
		var last place
		seen := 0
		err := b.query(ctx, b.db, "list events", `SELECT `+recordColumns+` FROM {p}inbox i WHERE `+w.String()+
			` ORDER BY received_at DESC, digest DESC, grp DESC LIMIT `+w.a.add(n-len(records)), w.a, func(rs *sql.Rows) error {
			r, escaped, digest, err := scanRecord(rs)
			if err != nil {
				return err
			}
			seen++
			last = place{micros(r.ReceivedAt), digest, r.Group}
			if wants(escaped) {
				records = append(records, r)
			}
			return nil
		})
		switch {
		case err != nil:
			return nil, "", err
		case seen == 0:
			return records, "", nil
		}
		after = last.cursor()
		if len(records) >= n {
			return records, after, nil
		}
	}
}

func (b *Inbox) eventsWhere(f Filter) *where {
	w := &where{d: b.d}
	w.common(f, "last_error", "received_at")
	if f.State != "" {
		w.add("state = %s", clean(string(f.State)))
	}
	if f.Reason != "" {
		w.add(`EXISTS (SELECT 1 FROM {p}dead d WHERE d.digest = i.digest AND d.grp = i.grp AND d.reason = %s)`, clean(string(f.Reason)))
	}
	w.add(sentOn, queue.Unrouted)
	return w
}

// sentOn leaves out what group "-" has handed on.
const sentOn = `NOT (grp = %s AND state = '` + string(Done) + `')`

func scanRecord(rs *sql.Rows, more ...any) (r Record, escaped string, digest []byte, err error) {
	var key, rawType []byte
	var state string
	var received, updated int64
	err = rs.Scan(append([]any{
		&digest, &r.Group, &key, &escaped, &rawType, &state, &received, &r.Attempts, &r.Generation,
		&r.LastError, &updated,
	}, more...)...)
	r.Key, r.Type, r.State = keyOf(key), fullType(escaped, rawType), State(state)
	r.ReceivedAt, r.UpdatedAt = fromMicros(received), fromMicros(updated)
	return r, escaped, digest, err
}

// Event is all that is known of one event, a record for each group, with its
// steps and its timeline; [ErrNotFound] when no group has met it.
func (b *Inbox) Event(ctx context.Context, key hookonce.Key) ([]Record, error) {
	digest := key.Digest()
	var records []Record
	var dones []Note
	err := b.query(ctx, b.db, "event", `SELECT `+recordColumns+`, done_at, notes FROM {p}inbox WHERE digest = $1 ORDER BY grp`,
		[]any{digest[:]}, func(rs *sql.Rows) error {
			var doneAt int64
			var notes string
			r, _, _, err := scanRecord(rs, &doneAt, &notes)
			if err != nil {
				return err
			}
			r.Timeline = append([]Note{{At: r.ReceivedAt, What: "received"}}, parseNotes(notes)...)
			done := Note{}
			if r.State == Done {
				done = Note{At: fromMicros(doneAt), What: "done"}
			}
			records, dones = append(records, r), append(dones, done)
			return nil
		})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("event %s: %w", key.Escaped(), ErrNotFound)
	}
	if err := b.addSteps(ctx, digest, records); err != nil {
		return nil, err
	}
	for i := range records {
		r := &records[i]
		slices.SortStableFunc(r.Timeline, func(x, y Note) int { return x.At.Compare(y.At) })
		if !dones[i].At.IsZero() {
			r.Timeline = append(r.Timeline, dones[i])
		}
	}
	return records, nil
}

// addSteps fills the steps in, in the order of their last records, and their
// lines of the timeline.
func (b *Inbox) addSteps(ctx context.Context, digest [16]byte, records []Record) error {
	return b.query(ctx, b.db, "event", `SELECT grp, run, `+stepColumns+` FROM {p}steps
		WHERE digest = $1 ORDER BY at, run, name`, []any{digest[:]}, func(rs *sql.Rows) error {
		var group string
		var run int
		step, err := scanStep(rs, &group, &run)
		if err != nil {
			return err
		}
		for i := range records {
			r := &records[i]
			if r.Group != group {
				continue
			}
			r.Steps = append(r.Steps, step)
			r.Timeline = append(r.Timeline, Note{At: step.At, What: "step " + string(step.State), Detail: step.Name})
		}
		return nil
	})
}

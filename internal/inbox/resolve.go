package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
)

// ErrNotDead says that an event is no dead letter of this generation any more.
var ErrNotDead = errors.New("not dead")

// Resolve records what a person says of a dead letter's effects that may have
// happened: done, so that a replay goes on behind them, or not, so that it
// tries them anew with the same downstream key. It returns their steps; none
// when nothing is unknown. [ErrNotDead] unless the event is dead at the
// generation.
func (b *Inbox) Resolve(ctx context.Context, group string, key hookonce.Key, generation int, done bool, reason string) (steps []string, err error) {
	digest := key.Digest()
	state, word := StepFailed, "rerun"
	if done {
		state, word = StepDone, "done"
	}
	err = b.tx(ctx, "resolve", func(tx *sql.Tx) error {
		steps = nil
		run, err := b.deadRun(ctx, tx, group, digest, generation)
		if err != nil {
			return err
		}
		now := b.now()
		var a args
		err = b.query(ctx, tx, "resolve", fmt.Sprintf(`UPDATE {p}steps SET state = '%s', at = %s, detail = %s, first_at = 0
			WHERE digest = %s AND grp = %s AND run = %s AND state IN ('%s', '%s') RETURNING name`, state,
			a.add(micros(now)), a.add(errorText("a person says "+word+": "+reason)), a.add(digest[:]), a.add(group), a.add(run),
			StepStarted, StepUnknown), a, collect(&steps))
		if err != nil || len(steps) == 0 {
			return err
		}
		if done {
			for _, step := range steps {
				_, err := b.exec(ctx, tx, "resolve", `UPDATE {p}once SET state = $1, at = $2 WHERE grp = $3 AND step = $4 AND digest = $5`,
					onceDone, micros(now), group, step, digest[:])
				if err != nil {
					return err
				}
			}
		}
		return b.addNote(ctx, tx, group, digest, "unknown "+word, strings.Join(steps, ", ")+": "+reason)
	})
	return steps, err
}

// Force prepares a new run of a dead letter: what its steps have recorded
// counts in it, but for the named ones, or for all when none is named. It
// returns the run's number, to be sent with the replay. A step that nothing is
// recorded of, and one beside them whose effect may have happened, is an error.
func (b *Inbox) Force(ctx context.Context, group string, key hookonce.Key, generation int, steps []string, reason string) (run int, err error) {
	digest := key.Digest()
	err = b.tx(ctx, "force", func(tx *sql.Tx) error {
		last, err := b.deadRun(ctx, tx, group, digest, generation)
		if err != nil {
			return err
		}
		run = last + 1
		var known, open []string
		err = b.query(ctx, tx, "force", `SELECT name, state FROM {p}steps WHERE digest = $1 AND grp = $2 AND run = $3`,
			args{digest[:], group, last}, func(rs *sql.Rows) error {
				var name, state string
				if err := rs.Scan(&name, &state); err != nil {
					return err
				}
				known = append(known, name)
				if s := StepState(state); s == StepStarted || s == StepUnknown {
					open = append(open, name)
				}
				return nil
			})
		if err != nil {
			return err
		}
		for _, name := range steps {
			if !slices.Contains(known, name) {
				return fmt.Errorf("step %s: %w among the event's steps (%s)", name, ErrNotFound, strings.Join(known, ", "))
			}
		}
		for _, name := range open {
			if len(steps) > 0 && !slices.Contains(steps, name) {
				return fmt.Errorf("step %s has an unknown end: decide about it first, or name it too", name)
			}
		}
		if err := b.copySteps(ctx, tx, group, digest, last, run, steps); err != nil {
			return err
		}
		what := "all steps"
		if len(steps) > 0 {
			what = strings.Join(steps, ", ")
		}
		return b.addNote(ctx, tx, group, digest, "forced", fmt.Sprintf("run %d, %s: %s", run, what, reason))
	})
	return run, err
}

// copySteps takes what is done over into another run, but for the named steps.
// Another try of the same, which was not sent, is written over.
func (b *Inbox) copySteps(ctx context.Context, tx *sql.Tx, group string, digest [16]byte, from, to int, without []string) error {
	if _, err := b.exec(ctx, tx, "force", `DELETE FROM {p}steps WHERE digest = $1 AND grp = $2 AND run = $3`, digest[:], group, to); err != nil {
		return err
	}
	if len(without) == 0 {
		return nil
	}
	var a args
	names := make([]any, len(without))
	for i, name := range without {
		names[i] = clean(name)
	}
	next := a.add(to)
	_, err := b.exec(ctx, tx, "force", `INSERT INTO {p}steps (digest, grp, run, name, state, attempts, at, token, detail, first_at)
		SELECT digest, grp, CAST(`+next+` AS integer), name, state, attempts, at, token, detail, first_at FROM {p}steps WHERE digest = `+a.add(digest[:])+
		` AND grp = `+a.add(group)+` AND run = `+a.add(from)+` AND name NOT IN (`+a.add(names...)+`)
		AND state IN ('done', 'skipped', 'stale')`, a...)
	return err
}

// deadRun locks a dead letter's record and returns its run.
func (b *Inbox) deadRun(ctx context.Context, tx *sql.Tx, group string, digest [16]byte, generation int) (run int, err error) {
	err = tx.QueryRowContext(ctx, b.q(`SELECT run FROM {p}inbox WHERE digest = $1 AND grp = $2 AND state = $3 AND generation = $4{wait}`),
		digest[:], group, string(Dead), generation).Scan(&run)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrNotDead
	}
	if err != nil {
		return 0, fmt.Errorf("inbox: dead letter: %w", err)
	}
	return run, nil
}

func (b *Inbox) addNote(ctx context.Context, tx *sql.Tx, group string, digest [16]byte, what, detail string) error {
	_, err := b.exec(ctx, tx, what, `UPDATE {p}inbox SET `+fmt.Sprintf(addNote, "$1")+` WHERE digest = $2 AND grp = $3`,
		note(b.now(), what, detail), digest[:], group)
	return err
}

// collect gives the one text column of each row to a list.
func collect(list *[]string) func(*sql.Rows) error {
	return func(rs *sql.Rows) error {
		var s string
		if err := rs.Scan(&s); err != nil {
			return err
		}
		*list = append(*list, s)
		return nil
	}
}

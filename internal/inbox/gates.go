package inbox

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// gates says whether a work's step is for its event: false when another event
// has its once_per value, or has brought a newer version. The result tells then
// what becomes of the step.
func (a *applying) gates(ctx context.Context, i int) (bool, error) {
	w := a.works[i]
	for _, gate := range []func(context.Context, Work) (Result, error){a.latest, a.once} {
		r, err := gate(ctx, w)
		if err != nil {
			return false, err
		}
		switch {
		case r.Err != nil || !r.Until.IsZero():
			a.results[i] = r
			return false, nil
		case r.State != "":
			a.results[i] = r
			a.recorded = append(a.recorded, i)
			return false, nil
		}
	}
	return true, nil
}

// The states of a once_per value.
const (
	onceHeld = "held"
	onceDone = "done"
)

// once takes a value for its event, or gives it up for done.
func (a *applying) once(ctx context.Context, w Work) (Result, error) {
	if w.Once == nil {
		return Result{}, nil
	}
	g := &onceGate{a: a, ctx: ctx, w: w, value: shortHash(w.Once.Value), digest: w.Lease.Key.Digest(), now: a.b.now()}
	if err := a.rename(ctx, "once", "value", g.value, w, w.Once.Was); err != nil {
		return Result{}, err
	}
	switch {
	case w.inside():
		return g.take(onceDone)
	case w.Step.State == StepStarted:
		return g.take(onceHeld)
	case w.Step.State == StepDone:
		_, err := g.write(onceDone)
		return Result{}, err
	}
	return Result{}, nil
}

type onceGate struct {
	a      *applying
	ctx    context.Context
	w      Work
	value  [16]byte
	digest [16]byte
	now    time.Time
}

// take makes the value this event's, unless it is another's.
func (g *onceGate) take(state string) (Result, error) {
	b, l := g.a.b, g.w.Lease
	n, err := b.exec(g.ctx, g.a.tx, "once_per", `INSERT INTO {p}once (grp, step, value, shown, state, digest, key, at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`, l.Group, clean(g.w.Step.Name), g.value[:],
		cut(clean(g.w.Once.Value), 100), state, g.digest[:], []byte(l.Key.String()), micros(g.now))
	if err != nil || n > 0 {
		return Result{}, err
	}
	var has string
	var digest, key []byte
	err = g.a.tx.QueryRowContext(g.ctx, b.q(`SELECT state, digest, key FROM {p}once WHERE grp = $1 AND step = $2 AND value = $3{wait}`),
		l.Group, clean(g.w.Step.Name), g.value[:]).Scan(&has, &digest, &key)
	switch {
	case errors.Is(err, sql.ErrNoRows): // expired this moment
		return Result{Until: g.now.Add(shortWait)}, nil
	case err != nil:
		return Result{}, fmt.Errorf("inbox: once_per: %w", err)
	case slices.Equal(digest, g.digest[:]):
	case has == onceDone && l.Run > 0: // a person wants it again
	case has == onceDone:
		return skippedFor(key), nil
	default:
		if r, err := g.heldBy(digest, key); err != nil || r != (Result{}) {
			return r, err
		}
	}
	_, err = g.write(state)
	return Result{}, err
}

func skippedFor(key []byte) Result {
	return Result{State: StepSkipped, Detail: "once_per: done for " + keyOf(key).Escaped()}
}

// write makes the value's row this event's.
func (g *onceGate) write(state string) (int64, error) {
	l := g.w.Lease
	return g.a.b.exec(g.ctx, g.a.tx, "once_per", `UPDATE {p}once SET state = $1, digest = $2, key = $3, at = $4
		WHERE grp = $5 AND step = $6 AND value = $7`, state, g.digest[:], []byte(l.Key.String()), micros(g.now),
		l.Group, clean(g.w.Step.Name), g.value[:])
}

// heldBy says what another event's hold means; the zero Result: it holds the
// value no longer.
func (g *onceGate) heldBy(digest, key []byte) (Result, error) {
	b, group := g.a.b, g.w.Lease.Group
	h, err := b.holder(g.ctx, g.a.tx, group, g.w.Step.Name, g.w.Once.Was, digest)
	if err != nil {
		return Result{}, err
	}
	switch {
	case h.step == StepDone:
		_, err := b.exec(g.ctx, g.a.tx, "once_per", `UPDATE {p}once SET state = $1, at = $2 WHERE grp = $3 AND step = $4 AND value = $5`,
			onceDone, micros(g.now), group, clean(g.w.Step.Name), g.value[:])
		return skippedFor(key), err
	case h.state == Running || h.state == Retrying:
		return Result{Until: h.until(g.now)}, nil
	case h.step == StepStarted || h.step == StepUnknown:
		return Result{Err: &HeldError{Value: g.w.Once.Value, Step: g.w.Step.Name, Key: keyOf(key)}}, nil
	}
	return Result{}, nil
}

// holder is the event that holds a value or an entity.
type holder struct {
	state      State // empty: no record
	leaseUntil time.Time
	due        time.Time
	step       StepState // of the step in question; empty: no record
}

// longestHold is how long an event waits for another one before it looks again.
const longestHold = 10 * time.Minute

// until is when to look at the holder again.
func (h holder) until(now time.Time) time.Time {
	at := h.due
	if h.state == Running {
		at = now.Add(shortWait) // it is at work: mostly done by then
	}
	if at.Before(now.Add(shortWait)) {
		at = now.Add(shortWait)
	}
	if at.After(now.Add(longestHold)) {
		at = now.Add(longestHold)
	}
	return at
}

func (b *Inbox) holder(ctx context.Context, tx *sql.Tx, group, step string, was []string, digest []byte) (holder, error) {
	var h holder
	var state string
	var run int
	var until, due int64
	err := tx.QueryRowContext(ctx, b.q(`SELECT state, lease_until, due, run FROM {p}inbox WHERE digest = $1 AND grp = $2`), digest, group).
		Scan(&state, &until, &due, &run)
	if errors.Is(err, sql.ErrNoRows) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("inbox: holder: %w", err)
	}
	h.state, h.leaseUntil, h.due = State(state), fromMicros(until), fromMicros(due)
	var a args
	names := []any{clean(step)}
	for _, name := range was {
		names = append(names, clean(name))
	}
	err = b.query(ctx, tx, "holder", `SELECT state FROM {p}steps WHERE digest = `+a.add(digest)+` AND grp = `+a.add(group)+
		` AND run = `+a.add(run)+` AND name IN (`+a.add(names...)+`)`, a, func(rs *sql.Rows) error {
		var s string
		err := rs.Scan(&s)
		h.step = StepState(s)
		return err
	})
	return h, err
}

// latest compares an event's version with the newest one applied, and notes it.
func (a *applying) latest(ctx context.Context, w Work) (Result, error) {
	if w.Latest == nil {
		return Result{}, nil
	}
	b, l := a.b, w.Lease
	entity, own, now := shortHash(w.Latest.Entity), l.Key.Digest(), b.now()
	if err := a.rename(ctx, "latest", "entity", entity, w, w.Latest.Was); err != nil {
		return Result{}, err
	}
	place := []any{l.Group, clean(w.Step.Name), entity[:]}
	const where = ` WHERE grp = $1 AND step = $2 AND entity = $3`
	if !w.inside() && w.Step.State == StepDone {
		_, err := b.exec(ctx, a.tx, "only_latest", `UPDATE {p}latest SET version = $4, key = $5, holder = $6, at = $7`+where,
			append(place, w.Latest.Version.String(), []byte(l.Key.String()), []byte{}, micros(now))...)
		return Result{}, err
	}
	if !w.inside() && w.Step.State != StepStarted {
		return Result{}, nil
	}
	_, err := b.exec(ctx, a.tx, "only_latest", `INSERT INTO {p}latest (grp, step, entity, shown, version, key, holder, at)
		VALUES ($1, $2, $3, $4, '', $5, $6, $7) ON CONFLICT DO NOTHING`,
		append(place, cut(clean(w.Latest.Entity), 100), []byte{}, []byte{}, micros(now))...)
	if err != nil {
		return Result{}, err
	}
	var version string
	var key, holding []byte
	err = a.tx.QueryRowContext(ctx, b.q(`SELECT version, key, holder FROM {p}latest`+where+`{wait}`), place...).Scan(&version, &key, &holding)
	if err != nil {
		return Result{}, fmt.Errorf("inbox: only_latest: %w", err)
	}
	if version != "" {
		applied, err := ParseVersion(version)
		if err != nil {
			return Result{}, err
		}
		c, err := w.Latest.Version.Compare(applied)
		if err != nil {
			return Result{Err: err}, nil
		}
		if c < 0 {
			return Result{State: StepStale, Detail: fmt.Sprintf("only_latest: %s brought %s before", keyOf(key).Escaped(), version)}, nil
		}
	}
	if w.inside() {
		_, err = b.exec(ctx, a.tx, "only_latest", `UPDATE {p}latest SET version = $4, key = $5, at = $6`+where,
			append(place, w.Latest.Version.String(), []byte(l.Key.String()), micros(now))...)
		return Result{}, err
	}
	// Two effects outside for one entity must not overtake each other on the way.
	if len(holding) > 0 && !slices.Equal(holding, own[:]) {
		h, err := b.holder(ctx, a.tx, l.Group, w.Step.Name, w.Latest.Was, holding)
		if err != nil {
			return Result{}, err
		}
		if h.state == Running && h.step == StepStarted && h.leaseUntil.After(now) {
			return Result{Until: h.until(now)}, nil
		}
	}
	_, err = b.exec(ctx, a.tx, "only_latest", `UPDATE {p}latest SET holder = $4, at = $5`+where, append(place, own[:], micros(now))...)
	return Result{}, err
}

// rename brings what stands under a step's former names to its name.
func (a *applying) rename(ctx context.Context, table, column string, value [16]byte, w Work, was []string) error {
	for _, old := range was {
		_, err := a.b.exec(ctx, a.tx, "rename", `UPDATE {p}`+table+` SET step = $1 WHERE grp = $2 AND step = $3 AND `+column+` = $4
			AND NOT EXISTS (SELECT 1 FROM {p}`+table+` WHERE grp = $2 AND step = $1 AND `+column+` = $4)`,
			clean(w.Step.Name), w.Lease.Group, clean(old), value[:])
		if err != nil {
			return err
		}
	}
	return nil
}

// shortHash is what values and entities are looked up by.
func shortHash(s string) [16]byte {
	sum := sha256.Sum256([]byte(s))
	return [16]byte(sum[:16])
}

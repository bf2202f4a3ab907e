package inbox

import (
	"context"
	"database/sql"
	"time"
)

// Pause is an operator's word that a group is to take no events.
type Pause struct {
	At     time.Time
	Reason string
}

// Pause keeps all consumers of a group from taking events, until Resume. It
// says whether that is new.
func (b *Inbox) Pause(ctx context.Context, group, reason string) (bool, error) {
	n, err := b.exec(ctx, b.db, "pause", `INSERT INTO {p}paused (grp, reason, at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		clean(group), errorText(reason), micros(b.now()))
	return n > 0, err
}

// Resume ends a pause. It says whether there was one.
func (b *Inbox) Resume(ctx context.Context, group string) (bool, error) {
	n, err := b.exec(ctx, b.db, "resume", `DELETE FROM {p}paused WHERE grp = $1`, clean(group))
	return n > 0, err
}

// Paused are the groups that are paused.
func (b *Inbox) Paused(ctx context.Context) (map[string]Pause, error) {
	paused := make(map[string]Pause)
	err := b.query(ctx, b.db, "paused groups", `SELECT grp, reason, at FROM {p}paused`, nil, func(rs *sql.Rows) error {
		var group string
		var p Pause
		var at int64
		if err := rs.Scan(&group, &p.Reason, &at); err != nil {
			return err
		}
		p.At = fromMicros(at)
		paused[group] = p
		return nil
	})
	return paused, err
}

// Duty takes, or keeps, a duty that one process at a time has, for as long as
// given. false: another one has it.
func (b *Inbox) Duty(ctx context.Context, name string, token [16]byte, lasts time.Duration) (bool, error) {
	now := b.now()
	n, err := b.exec(ctx, b.db, "duty", `INSERT INTO {p}duties AS d (name, token, until) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET token = excluded.token, until = excluded.until
		WHERE d.token = excluded.token OR d.until < $4`, name, token[:], micros(now.Add(lasts)), micros(now))
	return n > 0, err
}

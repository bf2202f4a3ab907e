package inbox

import (
	"context"
	"database/sql"
	"fmt"
)

// Expire forgets up to n events that were done, discarded or purged longer ago
// than the TTL, with their steps, and says how many. Unfinished events and
// dead letters are never forgotten. Call it again as long as it finds n.
func (b *Inbox) Expire(ctx context.Context, n int) (int, error) {
	gone := 0
	err := b.tx(ctx, "expire", func(tx *sql.Tx) error {
		gone = 0
		var a args
		before := a.add(micros(b.expiry()))
		byGroup := make(map[string][]any)
		// Whatever is done long ago was received long ago: received_at has the
		// index, so that done_at needs none.
		err := b.query(ctx, tx, "expire", fmt.Sprintf(`SELECT digest, grp FROM {p}inbox
			WHERE received_at < %s AND done_at > 0 AND done_at < %[1]s AND state IN ('%s', '%s', '%s')
			ORDER BY received_at LIMIT %s{lock}`, before, Done, Discarded, Purged, a.add(n)), a, func(rs *sql.Rows) error {
			var digest []byte
			var group string
			if err := rs.Scan(&digest, &group); err != nil {
				return err
			}
			byGroup[group] = append(byGroup[group], digest)
			return nil
		})
		if err != nil {
			return err
		}
		for group, digests := range byGroup {
			if err := b.forget(ctx, tx, group, digests); err != nil {
				return err
			}
			gone += len(digests)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	more, err := b.expireGates(ctx, n)
	return max(gone, more), err
}

// expireGates forgets once_per values that were done, and entities that
// changed, longer ago than the TTL, up to n of each. A value that is held goes
// with its holder's record.
func (b *Inbox) expireGates(ctx context.Context, n int) (int, error) {
	before := micros(b.expiry())
	values, err := b.exec(ctx, b.db, "expire", `DELETE FROM {p}once WHERE (grp, step, value) IN (SELECT grp, step, value FROM {p}once o
		WHERE at < $1 AND (state = $2 OR NOT EXISTS (SELECT 1 FROM {p}inbox i WHERE i.digest = o.digest AND i.grp = o.grp))
		ORDER BY at LIMIT $3)`, before, onceDone, n)
	if err != nil {
		return 0, err
	}
	entities, err := b.exec(ctx, b.db, "expire", `DELETE FROM {p}latest WHERE (grp, step, entity) IN (SELECT grp, step, entity
		FROM {p}latest WHERE at < $1 ORDER BY at LIMIT $2)`, before, n)
	return int(max(values, entities)), err
}

func (b *Inbox) forget(ctx context.Context, tx *sql.Tx, group string, digests []any) error {
	for len(digests) > 0 {
		part := digests[:min(chunk, len(digests))]
		digests = digests[len(part):]
		var a args
		cond := ` WHERE digest IN (` + a.add(part...) + `) AND grp = ` + a.add(group)
		for _, table := range []string{"{p}steps", "{p}inbox"} {
			if _, err := b.exec(ctx, tx, "expire", `DELETE FROM `+table+cond, a...); err != nil {
				return err
			}
		}
	}
	return nil
}

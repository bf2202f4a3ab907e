package inbox

import (
	"context"
	"database/sql"
	"slices"
)

// Bind notes that a group binds patterns, before it does, and returns those
// that it bound at earlier starts and no longer names. RabbitMQ does not tell
// who bound what, so this is where it is known.
func (b *Inbox) Bind(ctx context.Context, group string, patterns []string) (lost []string, err error) {
	err = b.tx(ctx, "bind", func(tx *sql.Tx) error {
		lost = nil
		err := b.query(ctx, tx, "bind", `SELECT pattern FROM {p}bindings WHERE grp = $1 ORDER BY pattern`, args{group}, func(rs *sql.Rows) error {
			var pattern string
			if err := rs.Scan(&pattern); err != nil {
				return err
			}
			if !slices.Contains(patterns, pattern) {
				lost = append(lost, pattern)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, pattern := range patterns {
			_, err := b.exec(ctx, tx, "bind",
				`INSERT INTO {p}bindings (grp, pattern) VALUES ($1, $2) ON CONFLICT DO NOTHING`, group, pattern)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return lost, err
}

// Unbound forgets patterns that are bound no more.
func (b *Inbox) Unbound(ctx context.Context, group string, patterns []string) error {
	return b.tx(ctx, "unbind", func(tx *sql.Tx) error {
		for _, pattern := range patterns {
			if _, err := b.exec(ctx, tx, "unbind", `DELETE FROM {p}bindings WHERE grp = $1 AND pattern = $2`, group, pattern); err != nil {
				return err
			}
		}
		return nil
	})
}

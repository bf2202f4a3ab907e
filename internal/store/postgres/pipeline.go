package postgres

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/hookonce/hookonce/internal/inbox"
)

// Pipeline sends statements in one round trip; it is an [inbox.Pipeline] for
// connections of [Open].
func Pipeline(ctx context.Context, conn *sql.Conn, _ *sql.Tx, statements []inbox.Statement) (int, error) {
	at := -1
	err := conn.Raw(func(driver any) error {
		c, ok := driver.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("a connection of another driver: %T", driver)
		}
		var b pgx.Batch
		for _, s := range statements {
			b.Queue(s.Text, s.Args...)
		}
		results := c.Conn().SendBatch(ctx, &b)
		for i := range statements {
			if _, err := results.Exec(); err != nil {
				at = i
				_ = results.Close() // says the same
				return err
			}
		}
		return results.Close()
	})
	return at, err
}

var _ inbox.Pipeline = Pipeline

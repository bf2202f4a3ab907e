package consumer

import (
	"context"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
)

// SweepDead passes the copies of a group's dead letters once.
func (c *Consumer) SweepDead(ctx context.Context, copies queue.DeadCopies, group string) (removed int, err error) {
	for _, g := range c.groups {
		if g.Name == group {
			n, err := copies.DeadLength(ctx, group)
			if err != nil {
				return 0, err
			}
			return (&sweeper{c: c, g: g, copies: copies, token: hookonce.NewToken()}).sweep(ctx, n)
		}
	}
	return 0, nil
}

package consumer

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/queue"
)

const (
	// sweepLook is how often the copies of dead letters are compared with the rows.
	sweepLook = time.Minute
	// sweepAtLeast is how often a few outdated copies are worth a sweep.
	sweepAtLeast = 24 * time.Hour
	// sweepDuty is how long a sweeper may be silent before another one begins.
	sweepDuty = 2 * time.Minute
	// sweepPrefetch is how many copies are looked at together.
	sweepPrefetch = 200
	// sweepPatience is how long a sweep waits for the next copy.
	sweepPatience = 10 * time.Second
)

// sweeper removes those copies of a group's dead letters that are outdated:
// their events were replayed or discarded since.
type sweeper struct {
	c      *Consumer
	g      *group
	copies queue.DeadCopies
	token  hookonce.Token
	last   time.Time
}

// run looks at the group's copies until ctx ends.
func (s *sweeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.look(ctx); err != nil && ctx.Err() == nil {
			s.c.Logger.Warn("copies of dead letters could not be swept; will try again", "group", s.g.Name, "err", err)
		}
		pause(ctx, sweepLook)
	}
}

// look sweeps when there are more copies than dead letters: at once when they
// are many in proportion, else once a day.
func (s *sweeper) look(ctx context.Context) error {
	n, err := s.copies.DeadLength(ctx, s.g.Name)
	if err != nil || n == 0 {
		return err
	}
	dead, err := s.c.Inbox.CountDead(ctx)
	if err != nil {
		return err
	}
	rows := int(dead[s.g.Name])
	outdated := n - rows
	if outdated <= 0 || outdated < rows/10 && s.c.Now().Sub(s.last) < sweepAtLeast {
		return nil
	}
	mine, err := s.duty(ctx)
	if err != nil || !mine {
		return err
	}
	s.last = s.c.Now()
	removed, err := s.sweep(ctx, n)
	s.c.Logger.Info("copies of dead letters swept", "group", s.g.Name, "copies", n, "removed", removed, "err", err)
	return err
}

// duty makes this process the group's sweeper.
func (s *sweeper) duty(ctx context.Context) (bool, error) {
	return s.c.Inbox.Duty(ctx, "sweep "+s.g.Name, s.token, sweepDuty)
}

// sweep passes the queue once, as long as it was at the start: outdated copies
// are acked, the others go to its end, confirmed, before they are. None is
// requeued: it would come to the front again.
func (s *sweeper) sweep(ctx context.Context, n int) (removed int, err error) {
	sub, err := s.copies.SubscribeDead(ctx, s.g.Name, sweepPrefetch)
	if err != nil {
		return 0, err
	}
	defer func() { _ = sub.Close() }() // what is unsettled stays in the queue
	for n > 0 {
		batch := s.take(ctx, sub, min(n, sweepPrefetch))
		if len(batch) == 0 {
			return removed, sub.Err()
		}
		n -= len(batch)
		gone, err := s.settle(ctx, sub, batch)
		removed += gone
		if err != nil {
			return removed, err
		}
		if mine, err := s.duty(ctx); err != nil || !mine {
			return removed, err
		}
	}
	return removed, nil
}

// take waits for a batch of copies; a short one when no more come.
func (s *sweeper) take(ctx context.Context, sub queue.Subscription, n int) []queue.Received {
	var batch []queue.Received
	timer := time.NewTimer(sweepPatience)
	defer timer.Stop()
	for len(batch) < n {
		select {
		case r, ok := <-sub.C():
			if !ok {
				return batch
			}
			batch = append(batch, r)
		case <-timer.C:
			return batch
		case <-ctx.Done():
			return nil
		}
	}
	return batch
}

func (s *sweeper) settle(ctx context.Context, sub queue.Subscription, batch []queue.Received) (removed int, err error) {
	keys := make([]hookonce.Key, len(batch))
	for i, r := range batch {
		keys[i] = r.Key
	}
	now, err := s.c.Inbox.Generations(ctx, s.g.Name, keys)
	if err != nil {
		return 0, err
	}
	var old, current []queue.Received
	for _, r := range batch {
		if g, known := now[r.Key.Digest()]; r.Invalid == nil && known && outdated(g, r.Generation) {
			old = append(old, r)
		} else {
			current = append(current, r)
		}
	}
	if err := sub.Ack(ctx, old...); err != nil {
		return 0, err
	}
	errs := make([]error, len(current))
	var wg sync.WaitGroup
	for i, r := range current {
		wg.Go(func() { errs[i] = sub.Bury(ctx, r, r.Delivery) })
	}
	wg.Wait()
	return len(old), errors.Join(errs...)
}

// outdated says that a copy of a generation is not the dead letter of today.
func outdated(g inbox.Generation, copied int) bool { return !g.Dead || copied < g.Number }

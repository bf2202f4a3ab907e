package publisher

import (
	"context"

	"github.com/hookonce/hookonce"
)

// settleBatch is how many entries are settled together at most.
const settleBatch = 256

// settleLoop removes confirmed entries from the outbox, as many together as
// there are; nothing waits when it is idle. An entry that was not settled would
// be published again, so this is tried until it works.
func (r *Relay) settleLoop(ctx context.Context) {
	for {
		batch := r.nextConfirmed()
		if batch == nil {
			select {
			case <-r.toSettle:
				continue
			case <-ctx.Done():
				return
			}
		}
		for try := 0; ; try++ {
			err := r.settle(ctx, batch)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			if try == 0 {
				r.cfg.Logger.Warn("published events could not be taken out of the outbox; will keep trying", "events", len(batch), "err", err)
			}
			pause(ctx, min(pauseFor(try), maxStorePause))
		}
	}
}

func (r *Relay) nextConfirmed() []hookonce.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.confirmed), settleBatch)
	if n == 0 {
		return nil
	}
	batch := r.confirmed[:n:n]
	r.confirmed = r.confirmed[n:]
	if len(r.confirmed) == 0 {
		r.confirmed = nil
	}
	return batch
}

func (r *Relay) settle(ctx context.Context, batch []hookonce.Entry) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Lease)
	defer cancel()
	if err := r.cfg.Outbox.Settle(ctx, batch); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range batch {
		r.recent.add(e.ID)
		r.land(e.ID, nil)
	}
	return nil
}

package publisher

import (
	"context"
	"time"
)

// adoptBatch is how many entries of dead instances are taken over at once.
const adoptBatch = 200

// leaseLoop shows every third of the lease that this instance lives, until work
// ends, and takes over what dead instances left, until ctx does.
func (r *Relay) leaseLoop(ctx, work context.Context) {
	every := r.cfg.Lease / 3
	failing := false
	for work.Err() == nil {
		n := 0
		if ctx.Err() == nil && r.small() {
			n = adoptBatch
		}
		took, err := r.adopt(work, n)
		switch {
		case err != nil && work.Err() == nil && !failing:
			failing = true
			r.cfg.Logger.Warn("the outbox lease could not be renewed; another instance may publish this one's events again", "err", err)
		case err == nil:
			failing = false
		}
		if took > 0 {
			r.cfg.Logger.Info("took over events of an instance that is gone", "events", took)
			r.mu.Lock()
			r.miss()
			r.mu.Unlock()
		}
		if took == adoptBatch {
			pause(work, every/10) // there is more, and the scan has begun
			continue
		}
		pause(work, every)
	}
}

func (r *Relay) adopt(ctx context.Context, n int) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, max(r.cfg.Lease/3, time.Second))
	defer cancel()
	return r.cfg.Outbox.Adopt(ctx, n)
}

// small reports whether this instance has room for the work of others.
func (r *Relay) small() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inFlight) <= r.cfg.Window/2 && r.cfg.Now().After(r.paused)
}

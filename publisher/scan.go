package publisher

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
)

const (
	// scanPage is how many entries are read at once.
	scanPage = 500
	// statsEvery is how often the size of the outbox is measured.
	statsEvery = 5 * time.Second
	// maxStorePause bounds the pause between tries of a store that is away. It is
	// short: nothing is published before the outbox has been read.
	maxStorePause = 2 * time.Second
)

// scanLoop reads the outbox when something in it is not in flight: at start,
// after offers that found no room, after failed publishes and adoptions. It
// also looks every lease: a claim whose answer was lost left an entry that
// nobody offered.
func (r *Relay) scanLoop(ctx context.Context) {
	tick := time.NewTicker(r.cfg.Lease)
	defer tick.Stop()
	small := false
	for ctx.Err() == nil {
		r.mu.Lock()
		due := r.missed != r.scanned
		rest := r.backoff.until.Sub(r.cfg.Now())
		r.mu.Unlock()
		if due && rest > 0 {
			pause(ctx, rest)
			continue
		}
		if due {
			small = r.scan(ctx, small)
			continue
		}
		select {
		case <-r.toScan:
		case <-tick.C:
			r.mu.Lock()
			r.missed++
			r.mu.Unlock()
		case <-ctx.Done():
		}
	}
}

// scan reads the outbox from its beginning to its end and puts everything in
// flight that is not. It reports whether there was so little that the next scan
// is a short one.
//
// When an entry is offered while it goes on, or one fails, missed has risen by
// the end, and another scan follows. That would never end under load if offers
// were only noted all the while, so a scan after a short one lets them through
// as long as there is room.
func (r *Relay) scan(ctx context.Context, afterSmall bool) (small bool) {
	r.mu.Lock()
	seen, failures := r.missed, r.backoff.failed
	if afterSmall && !r.cfg.Now().Before(r.paused) {
		r.noteOnly = false
	}
	for id, x := range r.aside {
		x.tried = false
		r.aside[id] = x
	}
	r.mu.Unlock()

	taken := 0
	var cursor hookonce.EntryID
	for {
		page, err := r.page(ctx, cursor)
		if err != nil {
			return false
		}
		if len(page) == 0 {
			break // a short one is no end: pages are bounded in bytes too
		}
		for _, e := range r.unknown(page) {
			took, err := r.admit(ctx, e)
			if err != nil {
				return false
			}
			if took {
				taken++
			}
		}
		cursor = page[len(page)-1].ID
	}
	r.endScan(seen, failures)
	return taken <= scanPage
}

// endScan closes the books of a complete scan.
func (r *Relay) endScan(seen uint64, failures int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scanned = seen
	if r.missed == seen && !r.cfg.Now().Before(r.paused) {
		r.noteOnly = false
	}
	if r.backoff.failed == failures {
		r.backoff.failed = 0
	}
	for id, x := range r.aside {
		if !x.tried {
			delete(r.aside, id) // somebody took it out of the outbox
		}
	}
	r.cfg.Metrics.OutboxSetAside.Set(float64(len(r.aside)))
}

// page reads some entries, and goes on trying while the store is away.
func (r *Relay) page(ctx context.Context, after hookonce.EntryID) ([]hookonce.Entry, error) {
	for try := 0; ; try++ {
		page, err := func() ([]hookonce.Entry, error) {
			ctx, cancel := context.WithTimeout(ctx, r.cfg.Lease)
			defer cancel()
			return r.cfg.Outbox.Pending(ctx, after, scanPage)
		}()
		if err == nil {
			return page, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		if try == 0 {
			r.cfg.Logger.Warn("the outbox could not be read; will keep trying", "err", err)
		}
		pause(ctx, min(pauseFor(try), maxStorePause))
	}
}

// unknown leaves out what is on its way. It does so at once, not when an entry's
// turn comes: by then it may be settled, and so long ago that it is forgotten.
func (r *Relay) unknown(page []hookonce.Entry) []hookonce.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := make([]hookonce.Entry, 0, len(page))
	for _, e := range page {
		if !r.knows(e.ID) {
			rest = append(rest, e)
		}
	}
	return rest
}

// admit puts an entry that was read in flight, unless it needs nothing. It
// waits for room.
func (r *Relay) admit(ctx context.Context, e hookonce.Entry) (bool, error) {
	for {
		r.mu.Lock()
		switch x, refused := r.aside[e.ID]; {
		case r.knows(e.ID):
			r.mu.Unlock()
			return false, nil
		case refused && r.cfg.Now().Before(x.again):
			x.tried = true
			r.aside[e.ID] = x
			r.mu.Unlock()
			return false, nil
		case ctx.Err() != nil:
			r.mu.Unlock()
			return false, ctx.Err()
		case r.room(sizeOf(e)):
			if refused {
				x.tried = true
				r.aside[e.ID] = x
			}
			r.take(e)
			r.mu.Unlock()
			return true, nil
		}
		r.mu.Unlock()
		select {
		case <-r.toScan: // rung by every landing
		case <-ctx.Done():
		}
	}
}

// gaugeLoop measures the outbox.
func (r *Relay) gaugeLoop(ctx context.Context) {
	m, ok := r.cfg.Outbox.(Measurer)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		r.measure(ctx, m)
		pause(ctx, statsEvery)
	}
}

func (r *Relay) measure(ctx context.Context, m Measurer) {
	ctx, cancel := context.WithTimeout(ctx, statsEvery)
	defer cancel()
	stats, err := m.Stats(ctx)
	if err != nil {
		r.cfg.Logger.Debug("the outbox could not be measured", "err", err)
		return
	}
	g := r.cfg.Metrics
	g.OutboxEvents.Set(float64(stats.Events))
	g.OutboxBytes.Set(float64(stats.Bytes))
	age := time.Duration(0)
	if !stats.Oldest.IsZero() {
		age = max(0, r.cfg.Now().Sub(stats.Oldest))
	}
	g.OutboxOldest.Set(age.Seconds())
}

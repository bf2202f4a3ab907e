package publisher

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
)

const (
	scanPage    = 500
	settleBatch = 256
	adoptBatch  = 200
	retryFirst  = 100 * time.Millisecond
	retryMax    = 5 * time.Second
	gaugesEvery = 2 * time.Second
)

// Run relays until ctx ends and what is on its way has come to an end, or
// DrainTimeout has passed.
func (r *Relay) Run(ctx context.Context) error {
	send, broken := context.WithCancel(context.WithoutCancel(ctx))
	defer broken()
	settle, settled := context.WithCancel(context.WithoutCancel(ctx))
	defer settled()

	var intake, sending, settling sync.WaitGroup
	intake.Go(func() { r.scan(ctx) })
	intake.Go(func() { r.lead(ctx) })
	intake.Go(func() { r.measure(ctx) })
	sending.Go(func() { r.send(send) })
	settling.Go(func() { r.settle(settle) })

	<-ctx.Done()
	r.mu.Lock()
	r.stopping = true
	r.changed.Broadcast()
	r.mu.Unlock()
	intake.Wait()
	left := r.drain()
	broken()
	sending.Wait()
	settled()
	settling.Wait()
	if left > 0 {
		r.cfg.Logger.Warn("events were still on their way; they stay in the outbox", "events", left)
	}
	return nil
}

// drain waits until nothing is on its way, at most DrainTimeout, and returns
// how much still is.
func (r *Relay) drain() int {
	timer := time.AfterFunc(r.cfg.DrainTimeout, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.late = true
		r.changed.Broadcast()
	})
	defer timer.Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.flight) > 0 && !r.late {
		r.changed.Wait()
	}
	return len(r.flight)
}

// send hands entries to the sender, in order.
func (r *Relay) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.fresh:
			r.cfg.Sender.Send(ctx, e.Event, func(err error) { r.finished(e, err) })
		}
	}
}

// settle removes confirmed entries from the outbox, together what is confirmed
// at the moment.
func (r *Relay) settle(ctx context.Context) {
	batch := make([]hookonce.Entry, 0, settleBatch)
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-r.confirmed:
			batch = append(batch[:0], e)
		}
	more:
		for len(batch) < settleBatch {
			select {
			case e := <-r.confirmed:
				batch = append(batch, e)
			default:
				break more
			}
		}
		if err := r.persist(ctx, "settling published events", func(ctx context.Context) error {
			return r.cfg.Outbox.Settle(ctx, batch)
		}); err != nil {
			return
		}
		r.mu.Lock()
		for _, e := range batch {
			if r.recent != nil {
				r.recent[e.ID] = struct{}{}
			}
			r.leaveLocked(e)
		}
		r.mu.Unlock()
	}
}

// persist repeats fn until it succeeds or ctx ends.
func (r *Relay) persist(ctx context.Context, what string, fn func(ctx context.Context) error) error {
	delay := retryFirst
	for {
		try, cancel := context.WithTimeout(ctx, r.cfg.Lease)
		err := fn(try)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if delay == retryFirst {
			r.cfg.Logger.Warn(what+" failed; will try again", "err", err)
		}
		pause(ctx, delay)
		delay = min(delay*2, retryMax)
	}
}

// scan reads the outbox whenever it holds what is not on its way.
func (r *Relay) scan(ctx context.Context) {
	for ctx.Err() == nil {
		if r.pass(ctx) {
			select {
			case <-ctx.Done():
			case <-r.wake:
			}
		}
		if d := r.backoff(); d > 0 {
			pause(ctx, d)
		}
	}
}

// pass brings the relay up to date and is true when it is no longer behind.
// The first sweep works off what waits. Then offers go out straight from memory
// again, and a second one finds those that were turned away until then.
func (r *Relay) pass(ctx context.Context) bool {
	if !r.sweep(ctx) {
		return false
	}
	r.mu.Lock()
	r.behind = false
	seen := r.missed
	r.mu.Unlock()
	ok := r.sweep(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recent = nil
	if !ok || r.missed != seen {
		r.behind = true
		return false
	}
	return true
}

// sweep goes once through the outbox, from its oldest entry to its end.
func (r *Relay) sweep(ctx context.Context) bool {
	var cursor hookonce.EntryID
	for {
		page, err := r.read(ctx, cursor)
		if err != nil {
			return false
		}
		if len(page) == 0 {
			return true
		}
		for _, e := range page {
			cursor = e.ID
			if !r.pick(e) {
				return false
			}
		}
	}
}

// read is the next page. From before the read on, what is settled is noted:
// the page may still show it.
func (r *Relay) read(ctx context.Context, cursor hookonce.EntryID) (page []hookonce.Entry, err error) {
	r.mu.Lock()
	r.recent = map[hookonce.EntryID]struct{}{}
	r.mu.Unlock()
	err = r.persist(ctx, "reading the outbox", func(ctx context.Context) (err error) {
		page, err = r.cfg.Outbox.Pending(ctx, cursor, scanPage)
		return err
	})
	return page, err
}

// pick sends an entry of a page on its way unless it is, or was, there. It
// waits for room and is false when there is none any more: after a failed
// publish the pass starts anew, behind a pause.
func (r *Relay) pick(e hookonce.Entry) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		_, flying := r.flight[e.ID]
		_, gone := r.recent[e.ID]
		if flying || gone {
			break
		}
		if r.failed || r.stopping {
			return false
		}
		if r.room() {
			r.takeLocked(e)
			r.fresh <- e
			break
		}
		r.changed.Wait()
	}
	if after(e.ID, r.scanned) {
		r.scanned = e.ID
	}
	return true
}

// backoff is how long to rest after a failed publish, longer each time until
// one succeeds.
func (r *Relay) backoff() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.failed {
		return 0
	}
	r.failed = false
	d := min(retryFirst<<min(r.streak, 6), retryMax)
	r.streak++
	return d/2 + rand.N(d/2)
}

// lead keeps this instance's lease and takes over what dead ones left, a lot
// at a time, each when the one before it is on its way.
func (r *Relay) lead(ctx context.Context) {
	more := false
	for ctx.Err() == nil {
		n := r.appetite()
		try, cancel := context.WithTimeout(ctx, r.cfg.Lease)
		took, err := r.cfg.Outbox.Adopt(try, n)
		cancel()
		if err != nil && ctx.Err() == nil {
			r.cfg.Logger.Warn("the outbox lease could not be renewed; will try again", "err", err)
		}
		if took > 0 {
			r.cfg.Logger.Info("took over events of an instance that is gone", "events", took)
			r.mu.Lock()
			r.missLocked()
			r.mu.Unlock()
		}
		if n > 0 {
			more = took == n
		}
		if more {
			pause(ctx, retryFirst)
		} else {
			pause(ctx, r.cfg.Lease/3)
		}
	}
}

// appetite is how many entries of dead instances this one can take now.
func (r *Relay) appetite() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behind || len(r.flight) > r.cfg.Window/2 {
		return 0 // the lease alone
	}
	return adoptBatch
}

// measure keeps the outbox gauges.
func (r *Relay) measure(ctx context.Context) {
	m, ok := r.cfg.Outbox.(Measurer)
	for ok && ctx.Err() == nil {
		if s, err := m.Stats(ctx); err == nil {
			r.cfg.Metrics.OutboxEvents.Set(float64(s.Events))
			r.cfg.Metrics.OutboxBytes.Set(float64(s.Bytes))
			r.cfg.Metrics.OutboxSetAside.Set(float64(s.SetAside))
			oldest := 0.0
			if !s.Oldest.IsZero() {
				oldest = time.Since(s.Oldest).Seconds()
			}
			r.cfg.Metrics.OutboxOldest.Set(max(oldest, 0))
		}
		pause(ctx, gaugesEvery)
	}
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

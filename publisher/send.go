package publisher

import (
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
)

// retryAside is how often an entry that the broker refuses is tried again.
const retryAside = time.Hour

// refusal is an entry set aside.
type refusal struct {
	again time.Time // when it may be tried again
	tried bool      // it was met by the reading that is going on
}

// sendLoop publishes what is ready. Send blocks while the broker is away; the
// window then fills and the rest stays in the outbox.
func (r *Relay) sendLoop(ctx context.Context) {
	for {
		r.mu.Lock()
		rest := r.paused.Sub(r.cfg.Now())
		r.mu.Unlock()
		if rest > 0 {
			pause(ctx, rest)
		}
		e, ok := r.next(&r.ready)
		if !ok {
			select {
			case <-r.toSend:
				continue
			case <-ctx.Done():
				return
			}
		}
		r.cfg.Sender.Send(ctx, e.Event, func(err error) { r.sent(e, err) })
	}
}

// aloneLoop publishes one suspect after the other, each by itself.
func (r *Relay) aloneLoop(ctx context.Context) {
	lone, ok := r.cfg.Sender.(loneSender)
	if !ok {
		return // nothing comes this way then
	}
	for {
		e, ok := r.next(&r.alone)
		if !ok {
			select {
			case <-r.toSendAlone:
				continue
			case <-ctx.Done():
				return
			}
		}
		err := lone.SendAlone(ctx, e.Event)
		r.sent(e, err)
	}
}

// sent files the result of a publish.
func (r *Relay) sent(e hookonce.Entry, err error) {
	_, canTell := r.cfg.Sender.(loneSender)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		delete(r.aside, e.ID)
		r.confirmed = append(r.confirmed, e)
		r.toSettle.ring()
	case errors.Is(err, ErrRefused):
		r.setAside(e, err)
	case errors.Is(err, ErrSuspect) && canTell:
		r.alone = append(r.alone, e)
		r.toSendAlone.ring()
	default:
		r.failed(e, err)
	}
}

// failed gives an entry back to the outbox, where it is found again after a
// pause. mu is held.
func (r *Relay) failed(e hookonce.Entry, err error) {
	now := r.cfg.Now()
	first := !now.Before(r.backoff.until)
	r.backoff.fail(now)
	r.land(e.ID, err)
	r.miss()
	if errors.Is(err, ErrUnroutable) {
		// Every event would fail the same way.
		r.paused, r.noteOnly = r.backoff.until, true
	}
	if first && r.open {
		r.cfg.Logger.Warn("event not published; it stays in the outbox and will be tried again",
			"source", e.Event.Key.Source, "key", e.Event.Key.String(), "err", err)
	}
}

// setAside leaves an entry alone for a while. mu is held.
func (r *Relay) setAside(e hookonce.Entry, err error) {
	if _, known := r.aside[e.ID]; !known {
		r.cfg.Logger.Error("the broker refuses an event for what it is; it is set aside in the outbox",
			"source", e.Event.Key.Source, "key", e.Event.Key.String(), "err", err)
	}
	r.aside[e.ID] = refusal{again: r.cfg.Now().Add(retryAside), tried: true}
	r.cfg.Metrics.OutboxSetAside.Set(float64(len(r.aside)))
	r.land(e.ID, err)
}

// pause sleeps unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

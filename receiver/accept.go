package receiver

import (
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
)

// accept claims the event and answers by what the store says.
func (rc *Receiver) accept(d *delivery) (reply, *rejection) {
	claimed, err := rc.claim(d)
	claimed.Err = err
	return rc.settled(d, claimed, time.Time{})
}

// settled answers by what the store says of a claim. Waiting for the broker
// ends at until; zero: after the time of one publish.
func (rc *Receiver) settled(d *delivery, claimed hookonce.Claimed, until time.Time) (reply, *rejection) {
	d.until = until
	switch err := claimed.Err; {
	case err == nil && claimed.Outcome == hookonce.New:
		return rc.first(d, claimed)
	case err == nil:
		return rc.repeat(d, claimed)
	case errors.Is(err, hookonce.ErrInvalid):
		return reply{}, refused.because("", err)
	case errors.Is(err, hookonce.ErrOutboxFull):
		return reply{}, outboxFull.because("", err)
	default:
		return rc.withoutStore(d, err)
	}
}

// claim asks the store. An answer that got lost is asked for once more: with
// the same token, a claim that was made is not mistaken for a duplicate. The
// sender's patience does not end it: a claim that is made must be heard of.
func (rc *Receiver) claim(d *delivery) (hookonce.Claimed, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.request.Context()), claimTimeout)
	defer cancel()
	for last := false; ; last = true {
		claimed, err := rc.cfg.Store.ClaimOne(ctx, d.claim)
		if err == nil {
			err = claimed.Err
		}
		if err == nil && claimed.Outcome != hookonce.New && claimed.Outcome != hookonce.Duplicate {
			err = hookonce.ErrUnknown
		}
		final := err == nil || errors.Is(err, hookonce.ErrInvalid) || errors.Is(err, hookonce.ErrOutboxFull)
		if final || last || ctx.Err() != nil {
			return claimed, err
		}
	}
}

// first handles a new event: it is in the outbox now, whatever follows.
func (rc *Receiver) first(d *delivery, claimed hookonce.Claimed) (reply, *rejection) {
	entry := hookonce.Entry{ID: claimed.Entry, Event: d.claim.Event}
	if d.source.confirm {
		ctx, cancel := d.publishContext()
		defer cancel()
		if err := rc.cfg.Confirmer.Confirm(ctx, entry); err != nil {
			rc.cfg.Relay.Offer(entry)
			return reply{}, notConfirmed.because("", err)
		}
		rc.confirmed.add(d.claim.Event.Key)
	} else if rc.cfg.Relay != nil {
		rc.cfg.Relay.Offer(entry)
	}
	return d.success(d.claim.Event.Key), nil
}

// repeat answers a duplicate as its first delivery was answered.
func (rc *Receiver) repeat(d *delivery, claimed hookonce.Claimed) (reply, *rejection) {
	var none [16]byte
	if d.forged(claimed) {
		return reply{}, badSignature.because("", errReused)
	}
	byKey := d.claim.Lookup == nil // else the body's hash is the key, and equal
	d.changed = byKey && claimed.Fingerprint != none && claimed.Fingerprint != d.claim.Fingerprint
	if d.changed && d.source.rejectChanged {
		return reply{}, changedBody.because("the first delivery of this key had another body", nil)
	}
	key := claimed.Key
	if key.ID == "" {
		key = d.claim.Claimed()
	}
	d.claim.Event.Key = key
	if d.source.confirm && !rc.confirmed.has(key) {
		// Whether the first delivery's event has reached the broker is not known
		// here; that it does must be, before this one is answered.
		if err := rc.publish(d); err != nil {
			return reply{}, notConfirmed.because("", err)
		}
		rc.confirmed.add(key)
	}
	return reply{outcome: duplicate, answer: stored(claimed.First, d.source.answer), key: key, replayed: true}, nil
}

// withoutStore publishes an event whose claim is unknown, where the source
// wants that and the key itself tells a duplicate to the consumer.
func (rc *Receiver) withoutStore(d *delivery, cause error) (reply, *rejection) {
	onlyStoreKnows := d.claim.Lookup != nil || len(d.claim.Previous) > d.guards
	if !d.source.publishOnDown || rc.cfg.Publisher == nil || onlyStoreKnows {
		return reply{}, storeDown.because("", cause)
	}
	if err := rc.publish(d); err != nil {
		return reply{}, storeDown.because("", errors.Join(cause, err))
	}
	if rc.alarm.allow(time.Now()) {
		rc.cfg.Logger.Warn("store down: event published without a claim", "source", d.source.name, "err", cause)
	}
	return d.success(d.claim.Event.Key), nil
}

func (rc *Receiver) publish(d *delivery) error {
	ctx, cancel := d.publishContext()
	defer cancel()
	return rc.cfg.Publisher.Publish(ctx, d.claim.Event)
}

// errReused is told to the log alone.
var errReused = errors.New("this signature was taken before, with another body")

// publishContext bounds waiting for the broker. The sender's patience does not.
func (d *delivery) publishContext() (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(d.request.Context())
	if !d.until.IsZero() {
		return context.WithDeadline(ctx, d.until)
	}
	return context.WithTimeout(ctx, publishTimeout)
}

func (d *delivery) success(key hookonce.Key) reply {
	r := reply{outcome: accepted, answer: d.source.answer, key: key}
	if d.claim.Event.Parked != "" {
		r.outcome = parked
	}
	return r
}

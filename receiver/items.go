package receiver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/receiver/provider"
)

const (
	// defaultMaxItems is how many events one request may carry.
	defaultMaxItems = 10000
	// claimChunk is how many of them are claimed in one operation.
	claimChunk = 256
)

// batchStore is a [Store] that claims many keys in one operation. A claim that
// was not made says so in its Err.
type batchStore interface {
	Claim(ctx context.Context, claims []hookonce.Claim) ([]hookonce.Claimed, error)
}

// split takes the request apart. false: it is one event, or none that the
// provider would send; what it then lacks, it lacks as a whole.
func (d *delivery) split() ([]provider.Item, bool, *rejection) {
	if d.input.JSON == nil {
		d.named = true
		return nil, false, nil
	}
	items, split, err := d.source.preset.Split(d.input.JSON, d.source.maxItems)
	switch {
	case errors.Is(err, provider.ErrTooMany):
		return nil, false, tooManyItems.because(fmt.Sprintf("at most %d", d.source.maxItems), nil)
	case err != nil:
		d.named, d.syntax = true, err
		return nil, false, nil
	case !split && len(items) == 1:
		d.input.Context = items[0].Context
	}
	return items, split, nil
}

// itemDelivery is an item as a delivery of its own. The whole body was parsed:
// its parts need not be.
func (d *delivery) itemDelivery(item provider.Item) *delivery {
	sub := &delivery{
		source: d.source, request: d.request, now: d.now, body: item.Raw, input: d.input,
		signed: d.signed, headers: d.headers, item: true, named: item.Named,
	}
	sub.input.JSON, sub.input.Context, sub.input.Form = item.Raw, item.Context, nil
	return sub
}

// itemsWork is a request's items on their way.
type itemsWork struct {
	claims  []*delivery
	results []hookonce.Claimed
	counts  [outcomes]int
	// worst is what keeps the request from being answered with success: the
	// sender shall send it again, and finds what was claimed.
	worst *rejection
}

// acceptItems claims the items one by one, in their order, and answers for all
// of them.
func (rc *Receiver) acceptItems(d *delivery, items []provider.Item) (reply, *rejection) {
	d.headers, _ = d.source.headers.kept(d.request.Header)
	w := &itemsWork{}
	verifier, signsItems := d.source.verifier.(provider.ItemVerifier)
	for _, item := range items {
		if signsItems {
			if err := verifier.VerifyItem(d.signed, item.Raw); err != nil {
				w.fail(badSignature.because("", err))
				continue
			}
		}
		sub := d.itemDelivery(item)
		wanted, rejected := sub.identify()
		switch {
		case rejected != nil: // an item is parked, never rejected
			w.fail(rejected)
		case !wanted:
			w.counts[filtered]++
		default:
			w.claims = append(w.claims, sub)
		}
	}
	rc.claimItems(w)
	rc.settleItems(w)
	if w.worst != nil {
		return reply{}, w.worst
	}
	return w.reply(d), nil
}

// fail keeps the rejection that makes the sender come again soonest.
func (w *itemsWork) fail(r *rejection) {
	if w.worst == nil || r.status > w.worst.status {
		w.worst = r
	}
}

// claimItems asks the store for all items. What it refuses for what it is, is
// parked.
func (rc *Receiver) claimItems(w *itemsWork) {
	for start := 0; start < len(w.claims); start += claimChunk {
		w.results = append(w.results, rc.claimMany(w.claims[start:min(start+claimChunk, len(w.claims))])...)
	}
	for i, d := range w.claims {
		if err := w.results[i].Err; errors.Is(err, hookonce.ErrInvalid) && d.claim.Event.Parked == "" {
			d.park("refused by the store")
			d.claim.Token, d.claim.TTL = hookonce.NewToken(), d.source.retention
			w.results[i] = rc.claimMany(w.claims[i : i+1])[0]
		}
	}
}

// claimMany claims a chunk. What got no answer is asked for once more, under
// the same tokens, as in [Receiver.claim].
func (rc *Receiver) claimMany(ds []*delivery) []hookonce.Claimed {
	out := make([]hookonce.Claimed, len(ds))
	many, ok := rc.cfg.Store.(batchStore)
	if !ok {
		for i, d := range ds {
			claimed, err := rc.claim(d)
			if claimed.Err == nil {
				claimed.Err = err
			}
			out[i] = claimed
		}
		return out
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ds[0].request.Context()), claimTimeout)
	defer cancel()
	open := make([]int, len(ds))
	for i := range ds {
		open[i] = i
	}
	for try := 0; try < 2 && len(open) > 0 && (try == 0 || ctx.Err() == nil); try++ {
		claims := make([]hookonce.Claim, len(open))
		for j, i := range open {
			claims[j] = ds[i].claim
		}
		got, err := many.Claim(ctx, claims)
		var unknown []int
		for j, i := range open {
			switch {
			case err != nil:
				out[i] = hookonce.Claimed{Err: err}
			case j >= len(got) || got[j].Err == nil && got[j].Outcome != hookonce.New && got[j].Outcome != hookonce.Duplicate:
				out[i] = hookonce.Claimed{Err: hookonce.ErrUnknown}
			default:
				out[i] = got[j]
			}
			if e := out[i].Err; e != nil && !errors.Is(e, hookonce.ErrInvalid) && !errors.Is(e, hookonce.ErrOutboxFull) {
				unknown = append(unknown, i)
			}
		}
		open = unknown
	}
	return out
}

// settleItems sends the new ones on their way, in their order. All waiting for
// the broker together is bounded as that of one event is.
func (rc *Receiver) settleItems(w *itemsWork) {
	until := time.Now().Add(publishTimeout)
	for i, d := range w.claims {
		r, rejected := rc.settled(d, w.results[i], until)
		if rejected != nil {
			w.fail(rejected)
			continue
		}
		w.counts[r.outcome]++
	}
}

func (w *itemsWork) reply(d *delivery) reply {
	r := reply{outcome: accepted, answer: d.source.answer, items: &w.counts}
	if w.counts[duplicate] == 0 || w.counts[accepted]+w.counts[parked] > 0 {
		return r
	}
	r.replayed = true
	for i := range w.results {
		if w.results[i].Outcome == hookonce.Duplicate {
			r.outcome, r.answer = duplicate, stored(w.results[i].First, d.source.answer)
			break
		}
	}
	return r
}

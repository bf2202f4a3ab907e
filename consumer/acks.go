package consumer

import (
	"context"
	"log/slog"
	"runtime"
	"sync"

	"github.com/hookonce/hookonce/internal/queue"
)

// ackTogether gathers the acks of deliveries that are settled at the same
// moment: a broker works several times as long on single ones. Nothing waits
// for an ack. One that fails is noted: the broker has lost the subscription, or
// will, and delivers the event again; the inbox knows it then.
type ackTogether struct {
	queue.Subscription
	ctx context.Context
	log *slog.Logger

	mu      sync.Mutex
	waiting []queue.Received
	busy    bool
	work    sync.WaitGroup
}

func newAckTogether(ctx context.Context, sub queue.Subscription, log *slog.Logger) *ackTogether {
	return &ackTogether{Subscription: sub, ctx: ctx, log: log}
}

// Ack implements queue.Subscription; it never fails.
func (a *ackTogether) Ack(_ context.Context, rs ...queue.Received) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting = append(a.waiting, rs...)
	if !a.busy {
		a.busy = true
		a.work.Go(a.run)
	}
	return nil
}

// run acks what waits until nothing does.
func (a *ackTogether) run() {
	for {
		runtime.Gosched() // those that were answered with it come first
		a.mu.Lock()
		rs := a.waiting
		a.waiting = nil
		a.busy = len(rs) > 0
		a.mu.Unlock()
		if len(rs) == 0 {
			return
		}
		err := a.Subscription.Ack(a.ctx, rs...)
		if err == nil {
			continue
		}
		// One that cannot be acked must not keep the others.
		for _, r := range rs {
			if err := a.Subscription.Ack(a.ctx, r); err != nil {
				a.log.Debug("delivery not acked; it will come again", "key", r.Key.String(), "err", err)
			}
		}
	}
}

// Close acks what waits first.
func (a *ackTogether) Close() error {
	a.work.Wait()
	return a.Subscription.Close()
}

package consumer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
)

// leases renews what this process runs, all of it in one statement, at a third
// of the lease. An attempt whose lease was lost has its context ended.
type leases struct {
	inbox *inbox.Inbox
	every time.Duration
	log   *slog.Logger

	mu   sync.Mutex
	held map[inbox.Lease]context.CancelCauseFunc
}

func newLeases(in *inbox.Inbox, lease time.Duration, log *slog.Logger) *leases {
	return &leases{inbox: in, every: lease / 3, log: log, held: map[inbox.Lease]context.CancelCauseFunc{}}
}

// hold keeps the lease alive until the returned function is called. The
// context ends with inbox.ErrLeaseLost when another consumer has taken over.
func (l *leases) hold(ctx context.Context, lease inbox.Lease) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l.mu.Lock()
	l.held[lease] = cancel
	l.mu.Unlock()
	return ctx, func() {
		l.mu.Lock()
		delete(l.held, lease)
		l.mu.Unlock()
		cancel(nil)
	}
}

// run renews until ctx ends.
func (l *leases) run(ctx context.Context) {
	tick := time.NewTicker(l.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.renew(ctx)
		}
	}
}

func (l *leases) renew(ctx context.Context) {
	l.mu.Lock()
	held := make([]inbox.Lease, 0, len(l.held))
	for lease := range l.held {
		held = append(held, lease)
	}
	l.mu.Unlock()
	if len(held) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.every)
	defer cancel()
	lost, err := l.inbox.Renew(ctx, held)
	if err != nil {
		// The steps go on: their own transaction is fenced, so a lease that
		// ended meanwhile can cost work, never a second effect.
		l.log.Warn("leases could not be renewed; will try again", "err", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range lost {
		if cancel, ok := l.held[lease]; ok {
			cancel(inbox.ErrLeaseLost)
		}
	}
}

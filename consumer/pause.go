package consumer

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
)

// pauseEvery is how often it is looked whether an operator has paused a group.
const pauseEvery = time.Second

// pauses knows which groups are paused. The inbox keeps that, over restarts
// and for all processes.
type pauses struct {
	inbox *inbox.Inbox
	log   *slog.Logger

	mu      sync.Mutex
	paused  map[string]bool
	known   bool
	changed chan struct{} // closed at the next change
}

func newPauses(in *inbox.Inbox, log *slog.Logger) *pauses {
	return &pauses{inbox: in, log: log, changed: make(chan struct{})}
}

// run looks until ctx ends.
func (p *pauses) run(ctx context.Context) {
	for ctx.Err() == nil {
		if all, err := p.inbox.Paused(ctx); err == nil {
			p.set(all)
		} else if ctx.Err() == nil {
			p.log.Warn("paused groups could not be asked for; will try again", "err", err)
		}
		pause(ctx, pauseEvery)
	}
}

func (p *pauses) set(all map[string]inbox.Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	same := p.known && len(all) == len(p.paused)
	for group := range all {
		same = same && p.paused[group]
	}
	if same {
		return
	}
	p.known, p.paused = true, make(map[string]bool, len(all))
	for group := range all {
		p.paused[group] = true
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// state says whether a group may take events, and gives the channel that is
// closed when that may have changed. Before the inbox was asked nothing may.
func (p *pauses) state(group string) (may bool, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known && !p.paused[group], p.changed
}

// await returns once the group may take events, with a context that ends when
// it may not any more, or when ctx does.
func (p *pauses) await(ctx context.Context, group string) (context.Context, context.CancelFunc) {
	may, changed := p.state(group)
	for ; !may && ctx.Err() == nil; may, changed = p.state(group) {
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	running, cancel := context.WithCancel(ctx)
	go func() {
		for may && running.Err() == nil {
			select {
			case <-changed:
				may, changed = p.state(group)
			case <-running.Done():
			}
		}
		cancel()
	}()
	return running, cancel
}

// is says whether a group is paused.
func (p *pauses) is(group string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused[group]
}

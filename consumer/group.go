package consumer

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/queue"
)

// handler does everything with one delivery, its settling included.
type handler func(ctx context.Context, sub queue.Subscription, r queue.Received)

// stream keeps one subscription alive and has its deliveries handled side by
// side, up to width of them.
type stream struct {
	c      *Consumer
	group  string
	width  int
	fetch  int
	handle handler
	up     atomic.Bool
}

const (
	resubscribeFirst = 100 * time.Millisecond
	resubscribeMax   = 10 * time.Second
)

// run subscribes, again and again, until soft ends. Work in progress uses hard,
// which ends later.
func (s *stream) run(soft, hard context.Context) {
	delay := resubscribeFirst
	for soft.Err() == nil {
		running, cancel := s.c.pauses.await(soft, s.group)
		err := s.once(running, hard, func() { delay = resubscribeFirst })
		paused := running.Err() != nil
		cancel()
		switch {
		case soft.Err() != nil:
			return
		case paused:
			s.c.Logger.Warn("group is paused; it takes no events", "group", s.group)
			continue
		}
		s.c.Logger.Warn("not consuming; will try again", "group", s.group, "err", err)
		pause(soft, delay/2+rand.N(delay/2))
		delay = min(delay*2, resubscribeMax)
	}
}

// once consumes for as long as one subscription lasts.
func (s *stream) once(soft, hard context.Context, stands func()) error {
	sub, err := s.c.Queue.Subscribe(soft, s.group, s.fetch)
	if err != nil {
		return err
	}
	s.up.Store(true)
	defer s.up.Store(false)
	s.c.Logger.Info("consuming", "group", s.group)
	stands()
	return s.drain(soft, hard, newAckTogether(hard, sub, s.c.Logger))
}

// drain hands out deliveries until the subscription breaks or soft ends, then
// waits for what is in work.
func (s *stream) drain(soft, hard context.Context, sub queue.Subscription) error {
	stop := context.AfterFunc(soft, sub.Stop)
	defer stop()
	var wg sync.WaitGroup
	places := make(chan struct{}, s.width)
	for r := range sub.C() {
		select {
		case places <- struct{}{}:
		case <-soft.Done():
		}
		if soft.Err() != nil {
			// Fetched, not begun: others can have it now.
			_ = sub.Requeue(hard, r)
			continue
		}
		wg.Go(func() {
			s.handle(hard, sub, r)
			<-places
		})
	}
	wg.Wait()
	err := sub.Err()
	if cerr := sub.Close(); err == nil {
		err = cerr
	}
	return err
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

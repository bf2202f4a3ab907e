package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// stage is a part of the process that runs until its context ends.
type stage struct {
	name string
	run  func(ctx context.Context) error
}

// runStages starts all stages at once and stops them in the given order, each
// when the one before it has come to its end: first what takes work in, last
// what the others still need. ctx ending stops them; so does the first stage
// that ends by itself, because a receiver that answers while its relay is dead
// would be a silent backlog.
func runStages(ctx context.Context, stages ...stage) error {
	type running struct {
		stop context.CancelFunc
		done chan struct{}
	}
	first := make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	var errs []error
	rs := make([]running, len(stages))
	for i, s := range stages {
		sctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		rs[i] = running{stop: cancel, done: make(chan struct{})}
		go func() {
			defer close(rs[i].done)
			if err := s.run(sctx); err != nil && !errors.Is(err, context.Canceled) {
				mu.Lock()
				errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
				mu.Unlock()
			}
			once.Do(func() { close(first) })
		}()
	}
	if len(stages) > 0 {
		select {
		case <-ctx.Done():
		case <-first:
		}
	}
	for _, r := range rs {
		r.stop()
		<-r.done
	}
	return errors.Join(errs...)
}

package app

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/rabbit"
)

// unbindEvery is how often an unbinding that failed is tried again.
const unbindEvery = 5 * time.Second

// forgetPatterns takes patterns off the groups' queues that their match no
// longer names: events would else come that nobody wants.
func (s *system) forgetPatterns(ctx context.Context, q *rabbit.Queue) error {
	if rabbit.Mode(s.cfg.Broker.Topology) != rabbit.Declare {
		return nil // somebody else sees to the bindings
	}
	lost := map[string][]string{}
	for _, name := range sortedKeys(s.cfg.Consumers) {
		patterns, err := s.inbox.Bind(ctx, name, s.cfg.Consumers[name].Match)
		if err != nil {
			return err
		}
		if len(patterns) > 0 {
			lost[name] = patterns
		}
	}
	s.intake = append(s.intake, stage{"bindings", func(ctx context.Context) error {
		for _, name := range sortedKeys(lost) {
			s.unbind(ctx, q, name, lost[name])
		}
		<-ctx.Done()
		return nil
	}})
	return nil
}

// unbind goes on until it is done or ctx ends.
func (s *system) unbind(ctx context.Context, q *rabbit.Queue, group string, patterns []string) {
	for ctx.Err() == nil {
		err := q.Unbind(ctx, group, patterns...)
		if err == nil {
			err = s.inbox.Unbound(ctx, group, patterns)
		}
		if err == nil {
			s.log.Info("the group's queue gets no more events of these patterns", "group", group, "patterns", patterns)
			return
		}
		if ctx.Err() == nil {
			s.log.Warn("patterns that the group no longer names could not be unbound; will try again", "group", group, "patterns", patterns, "err", err)
		}
		t := time.NewTimer(unbindEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

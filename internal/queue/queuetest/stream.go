package queuetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/queue"
)

func (s *suite) prefetch() {
	all := ids("e", 5)
	for _, id := range all {
		s.send("tickets", first(id))
	}
	sub := s.subscribe("tickets", 2)
	rs, got := s.nextN(sub, 2)
	s.nothing(sub)
	s.must(sub.Ack(s.ctx, rs[0]))
	third := s.next(sub)
	s.nothing(sub)
	s.must(sub.Ack(s.ctx, rs[1], third))
	_, rest := s.nextN(sub, 2)
	got = append(append(got, third.Key.ID), rest...)
	slices.Sort(got)
	s.wantIDs(got, all...)
}

// Of two subscriptions each event goes to one.
func (s *suite) shared() {
	a, b := s.subscribe("tickets", 5), s.subscribe("tickets", 5)
	all := ids("e", 50)
	for _, id := range all {
		s.send("tickets", first(id))
	}
	var got []string
	var fromA, fromB int
	take := func(sub queue.Subscription, r queue.Received, n *int) {
		*n++
		got = append(got, r.Key.ID)
		s.must(sub.Ack(s.ctx, r))
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	for len(got) < len(all) {
		select {
		case r := <-a.C():
			take(a, r, &fromA)
		case r := <-b.C():
			take(b, r, &fromB)
		case <-t.C:
			s.Fatalf("%d of %d delivered", len(got), len(all))
		}
	}
	s.nothing(a)
	s.nothing(b)
	slices.Sort(got)
	s.wantIDs(got, all...)
	if fromA == 0 || fromB == 0 {
		s.Errorf("%d and %d: one subscription got nothing", fromA, fromB)
	}
}

// ended waits for the end of a stream and returns what still came.
func (s *suite) ended(sub queue.Subscription) []queue.Received {
	s.Helper()
	t := time.NewTimer(wait)
	defer t.Stop()
	var rest []queue.Received
	for {
		select {
		case r, ok := <-sub.C():
			if !ok {
				return rest
			}
			rest = append(rest, r)
		case <-t.C:
			s.Fatalf("the stream did not end within %v", wait)
		}
	}
}

func (s *suite) stopThenSettle() {
	s.send("tickets", first("ack"), first("retry"), first("back"), first("bury"))
	sub := s.subscribe("tickets", 10)
	byID := map[string]queue.Received{}
	rs, _ := s.nextN(sub, 4)
	for _, r := range rs {
		byID[r.Key.ID] = r
	}
	sub.Stop()
	sub.Stop()
	if rest := s.ended(sub); len(rest) != 0 {
		s.Errorf("%d deliveries after Stop", len(rest))
	}
	if err := sub.Err(); err != nil {
		s.Errorf("Err after Stop: %v", err)
	}
	s.must(sub.Ack(s.ctx, byID["ack"]))
	s.must(sub.Requeue(s.ctx, byID["back"]))
	s.must(sub.Bury(s.ctx, byID["bury"], byID["bury"].Delivery))
	s.retryIn(sub, byID["retry"], 10*time.Millisecond)
	s.close(sub)
	again := s.subscribe("tickets", 10)
	_, got := s.nextN(again, 2)
	s.wantIDs(got, "back", "retry")
	s.nothing(again)
}

// What Stop finds on its way is for others, at once.
func (s *suite) stopGivesBack() {
	all := ids("e", 30)
	for _, id := range all {
		s.send("tickets", first(id))
	}
	sub := s.subscribe("tickets", 20)
	taken := s.next(sub)
	sub.Stop()
	rest := s.ended(sub)
	s.must(sub.Requeue(s.ctx, rest...))
	other := s.subscribe("tickets", 100)
	_, got := s.nextN(other, len(all)-1)
	s.wantIDs(got, slices.DeleteFunc(slices.Clone(all), func(id string) bool { return id == taken.Key.ID })...)
	s.must(sub.Ack(s.ctx, taken))
	s.close(sub)
	s.nothing(other)
}

func (s *suite) closeTwice() {
	sub := s.subscribe("tickets", 10)
	s.close(sub)
	s.close(sub)
	if rest := s.ended(sub); len(rest) != 0 {
		s.Errorf("%d deliveries after Close", len(rest))
	}
	if err := sub.Err(); err != nil {
		s.Errorf("Err after Close: %v", err)
	}
}

// load settles many events from many goroutines in every way.
func (s *suite) load() {
	const n, workers = 600, 8
	all := ids("e", n)
	var senders sync.WaitGroup
	for w := range workers {
		senders.Go(func() {
			for i := w; i < n; i += workers {
				if err := s.q.Send(s.ctx, "tickets", first(all[i])); err != nil {
					s.Errorf("send: %v", err)
				}
			}
		})
	}
	sub := s.subscribe("tickets", 50)
	var mu sync.Mutex
	done := map[string]int{}
	finished := make(chan struct{})
	settle := func(r queue.Received) error {
		mu.Lock()
		defer mu.Unlock()
		var i int
		_, _ = fmt.Sscanf(r.Key.ID, "e%04d", &i)
		switch {
		case r.Attempt == 0 && i%10 == 0:
			next := r.Delivery
			next.Attempt, next.Due = 1, time.Now().Add(50*time.Millisecond)
			return sub.Retry(s.ctx, r, next)
		case i%10 == 1:
			defer func() { done[r.Key.ID]++ }()
			return sub.Bury(s.ctx, r, r.Delivery)
		}
		if done[r.Key.ID]++; len(done) == n {
			close(finished)
		}
		return sub.Ack(s.ctx, r)
	}
	var consumers sync.WaitGroup
	for range workers {
		consumers.Go(func() {
			for r := range sub.C() {
				if err := settle(r); err != nil {
					s.Errorf("settle %s: %v", r.Key, err)
				}
			}
		})
	}
	senders.Wait()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-finished:
	case <-t.C:
		s.Errorf("not finished within %v", wait)
	}
	sub.Stop()
	consumers.Wait()
	s.close(sub)
	mu.Lock()
	defer mu.Unlock()
	for _, id := range all {
		if done[id] != 1 {
			s.Errorf("%s was settled %d times", id, done[id])
		}
	}
	s.empty("tickets")
}

func (s *suite) restart() {
	s.send("tickets", first("untouched"), first("unsettled"), first("acked"), first("retried"))
	lost := first("unmatched")
	lost.Key.Source = "bank"
	s.send("", lost)
	sub := s.subscribe("tickets", 10)
	rs, _ := s.nextN(sub, 4)
	var due time.Time
	for _, r := range rs {
		switch r.Key.ID {
		case "acked":
			s.must(sub.Ack(s.ctx, r))
		case "retried":
			due = s.retryIn(sub, r, 2*time.Second).Due
		case "untouched":
			s.must(sub.Requeue(s.ctx, r))
		}
	}
	s.q.Queue = s.q.Restart()
	again := s.subscribe("tickets", 10)
	_, got := s.nextN(again, 3)
	s.wantIDs(got, "retried", "unsettled", "untouched")
	if time.Now().Before(due) {
		s.Error("the restart made a delayed event come early")
	}
	s.nothing(again)
	s.wantIDs([]string{s.next(s.subscribe(queue.Unrouted, 10)).Key.ID}, "unmatched")
}

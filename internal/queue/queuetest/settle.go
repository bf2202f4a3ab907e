package queuetest

import (
	"github.com/hookonce/hookonce/internal/queue"
)

func (s *suite) ack() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	s.must(sub.Ack(s.ctx, s.next(sub)))
	s.nothing(sub)
	s.close(sub)
	s.empty("tickets")
}

func (s *suite) ackTwice() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	r := s.next(sub)
	s.must(sub.Ack(s.ctx, r))
	_ = sub.Ack(s.ctx, r) // may be an error, must do no harm
	_ = sub.Requeue(s.ctx, r)
	s.send("tickets", first("2"))
	s.wantIDs([]string{s.next(sub).Key.ID}, "2")
	s.nothing(sub)
}

func (s *suite) ackMany() {
	all := ids("e", 20)
	for _, id := range all {
		s.send("tickets", first(id))
	}
	sub := s.subscribe("tickets", 20)
	rs, got := s.nextN(sub, 20)
	s.wantIDs(got, all...)
	keep := rs[7]
	// In any order, in several calls, with one left out and one mentioned twice.
	s.must(sub.Ack(s.ctx, rs[12], rs[3], rs[0], rs[1], rs[2], rs[3]))
	s.must(sub.Ack(s.ctx, append(append([]queue.Received{}, rs[13:]...), rs[4:7]...)...))
	s.must(sub.Ack(s.ctx, rs[8:12]...))
	s.must(sub.Ack(s.ctx))
	s.close(sub)
	again := s.subscribe("tickets", 20)
	s.wantIDs([]string{s.next(again).Key.ID}, keep.Key.ID)
	s.nothing(again)
}

func (s *suite) unsettled() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	d := s.next(sub).Delivery
	s.close(sub)
	again := s.subscribe("tickets", 10)
	s.wantDelivery(s.next(again), d)
	s.nothing(again)
}

func (s *suite) requeue() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	r := s.next(sub)
	s.must(sub.Requeue(s.ctx, r))
	again := s.next(sub)
	s.wantDelivery(again, r.Delivery)
	s.must(sub.Ack(s.ctx, again))
	s.nothing(sub)
}

func (s *suite) requeueMany() {
	all := ids("e", 5)
	for _, id := range all {
		s.send("tickets", first(id))
	}
	sub := s.subscribe("tickets", 5)
	rs, _ := s.nextN(sub, 5)
	s.must(sub.Requeue(s.ctx, rs...))
	rs, got := s.nextN(sub, 5)
	s.wantIDs(got, all...)
	s.must(sub.Ack(s.ctx, rs...))
	s.close(sub)
	s.empty("tickets")
}

func (s *suite) bury() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	r := s.next(sub)
	d := r.Delivery
	d.DeadCopy, d.Reason = true, "failed"
	s.must(sub.Bury(s.ctx, r, d))
	s.nothing(sub)
	s.close(sub)
	s.empty("tickets")
	s.empty("mails")
}

// A delivery of a subscription that has ended cannot be settled by another one,
// which has a delivery of its own of the same event.
func (s *suite) otherSubscription() {
	s.send("tickets", first("1"))
	old := s.subscribe("tickets", 10)
	stale := s.next(old)
	s.close(old)

	now := s.subscribe("tickets", 10)
	s.next(now)
	_ = now.Ack(s.ctx, stale)
	_ = now.Requeue(s.ctx, stale)
	s.nothing(now)
	if err := old.Retry(s.ctx, stale, stale.Delivery); err == nil {
		s.Error("an ended subscription moved an event")
	}
	s.close(now)

	last := s.subscribe("tickets", 10)
	s.must(last.Ack(s.ctx, s.next(last)))
	s.nothing(last)
}

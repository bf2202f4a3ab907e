package queuetest

import (
	"time"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

// wantAt checks that a delivery did not come before it was due.
func (s *suite) wantAt(due time.Time) {
	s.Helper()
	now := time.Now()
	if early := due.Sub(now); early > 0 {
		s.Errorf("delivered %v before it was due", early)
	}
}

func (s *suite) retryIn(sub queue.Subscription, r queue.Received, d time.Duration) wire.Delivery {
	s.Helper()
	next := r.Delivery
	next.Attempt++
	next.Due = time.Now().UTC().Add(d).Truncate(time.Millisecond)
	s.must(sub.Retry(s.ctx, r, next))
	return next
}

func (s *suite) notBeforeDue() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	want := s.retryIn(sub, s.next(sub), 2200*time.Millisecond)
	r := s.next(sub)
	s.wantAt(want.Due)
	s.wantDelivery(r, want)
	s.must(sub.Ack(s.ctx, r))
	s.close(sub)
	s.empty("tickets")
	s.empty("mails")
}

func (s *suite) retryShort() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	want := s.retryIn(sub, s.next(sub), 100*time.Millisecond)
	r := s.next(sub)
	s.wantAt(want.Due)
	s.wantDelivery(r, want)
}

func (s *suite) retryPast() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	want := s.retryIn(sub, s.next(sub), -time.Hour)
	r := s.next(sub)
	s.wantDelivery(r, want)
	next := r.Delivery
	next.Due = time.Time{}
	s.must(sub.Retry(s.ctx, r, next))
	s.wantDelivery(s.next(sub), next)
}

func (s *suite) sendWithDue() {
	d := first("1")
	d.Due = time.Now().UTC().Add(1500 * time.Millisecond).Truncate(time.Millisecond)
	s.send("tickets", d)
	sub := s.subscribe("tickets", 10)
	r := s.next(sub)
	s.wantAt(d.Due)
	s.wantDelivery(r, d)
}

// An event that waits takes no place of those that could run, not even where
// only one may be out at a time.
func (s *suite) retryHoldsUpNobody() {
	s.send("tickets", first("slow"))
	sub := s.subscribe("tickets", 1)
	want := s.retryIn(sub, s.next(sub), 3*time.Second)
	for _, id := range ids("fast", 5) {
		s.send("tickets", first(id))
		r := s.next(sub)
		s.wantIDs([]string{r.Key.ID}, id)
		s.must(sub.Ack(s.ctx, r))
	}
	s.wantIDs([]string{s.next(sub).Key.ID}, "slow")
	s.wantAt(want.Due)
}

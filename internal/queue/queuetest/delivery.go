package queuetest

import (
	"bytes"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/wire"
)

func (s *suite) wantDelivery(got queue.Received, want wire.Delivery) {
	s.Helper()
	if !bytes.Equal(got.Body, want.Body) {
		s.Errorf("the body of %d bytes is not the one sent, of %d bytes", len(got.Body), len(want.Body))
	}
	got.Body, want.Body = nil, nil
	if diff := cmp.Diff(want, got.Delivery, cmpopts.EquateEmpty(), cmpopts.EquateApproxTime(time.Millisecond)); diff != "" {
		s.Errorf("delivered (+) is not what was sent (-):\n%s", diff)
	}
}

func (s *suite) whole() {
	d := first("a/b%2F ü\x00\xff") // a key is any bytes
	d.Type = "order paid/ü"
	d.Header = map[string]string{"X-Request-Id": "7", "User-Agent": "a, b"}
	d.Context = []byte(`{"entry":"1"}`)
	d.Unmatched = "drop"
	d.TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	s.send("tickets", d)
	sub := s.subscribe("tickets", 10)
	r := s.next(sub)
	s.wantDelivery(r, d)
	if r.At.IsZero() || time.Since(r.At) > wait || r.At.After(time.Now()) {
		s.Errorf("delivered at %v", r.At)
	}
}

func (s *suite) factsTravel() {
	d := first("1")
	d.Attempt, d.Generation, d.Run, d.Rerouted = 3, 2, 1, true
	d.UnmatchedSince = time.Now().UTC().Truncate(time.Millisecond)
	s.send("tickets", d)
	s.wantDelivery(s.next(s.subscribe("tickets", 10)), d)
}

func (s *suite) bodyOfEveryByte() {
	d := first("1")
	d.Body = nil
	for i := range 300_000 {
		d.Body = append(d.Body, byte(i))
	}
	none := first("2")
	none.Body, none.ContentType = nil, ""
	s.send("tickets", d, none)
	sub := s.subscribe("tickets", 10)
	for range 2 {
		if r := s.next(sub); r.Key.ID == "1" {
			s.wantDelivery(r, d)
		} else {
			s.wantDelivery(r, none)
		}
	}
}

func (s *suite) oneGroup() {
	s.send("tickets", first("1"))
	sub := s.subscribe("tickets", 10)
	s.wantIDs([]string{s.next(sub).Key.ID}, "1")
	s.empty("mails")
	s.empty(queue.Unrouted)
}

func (s *suite) everyMatch() {
	both, one := first("both"), first("one")
	one.Type = "refund"
	s.send("", both, one)
	_, got := s.nextN(s.subscribe("tickets", 10), 2)
	s.wantIDs(got, "both", "one")
	m := s.subscribe("mails", 10)
	s.wantIDs([]string{s.next(m).Key.ID}, "both")
	s.nothing(m)
	s.empty(queue.Unrouted)
}

func (s *suite) unmatched() {
	d := first("1")
	d.Key.Source = "bank"
	d.Rerouted = true
	s.send("", d)
	sub := s.subscribe(queue.Unrouted, 10)
	r := s.next(sub)
	s.wantDelivery(r, d)
	s.must(sub.Ack(s.ctx, r))
	s.close(sub)
	s.empty(queue.Unrouted)
	s.empty("tickets")
}

func (s *suite) parked() {
	d := first("1") // matches both groups, and goes to none of them
	d.Parked = "no key"
	s.send("", d)
	s.wantDelivery(s.next(s.subscribe(queue.Unrouted, 10)), d)
	s.empty("tickets")
	s.empty("mails")
}

func (s *suite) unroutedByName() {
	s.send(queue.Unrouted, first("1"))
	s.wantIDs([]string{s.next(s.subscribe(queue.Unrouted, 10)).Key.ID}, "1")
	s.empty("tickets")
}

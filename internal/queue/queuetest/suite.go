// Package queuetest is the suite that every queue.Queue passes: RabbitMQ and
// the queue inside the embedded store behave the same to the code above them.
//
//	func TestQueue(t *testing.T) { queuetest.Run(t, queuetest.Harness{Open: open}) }
package queuetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/topic"
	"github.com/hookonce/hookonce/internal/wire"
)

// Group is a consumer group of a test and the patterns it wants.
type Group struct {
	Name  string
	Match []string
}

// Wants says whether the group matches an event, for harnesses that route in Go.
func (g Group) Wants(e hookonce.Event) bool {
	return slices.ContainsFunc(g.Match, func(pattern string) bool {
		p, err := topic.Parse(pattern)
		return err == nil && p.Match(e.Topic())
	})
}

// Opened is a running queue.
type Opened struct {
	queue.Queue
	// Restart ends the queue as a crash would, settling nothing, and opens it
	// again on what is durable.
	Restart func() queue.Queue
}

// Harness gives the suite its queues.
type Harness struct {
	// Open opens an empty queue with these groups; the harness ends it with the test.
	Open func(t *testing.T, groups ...Group) Opened
}

// wait bounds everything that has to happen.
const wait = 30 * time.Second

// quietFor is how long nothing must happen for it to count as nothing.
const quietFor = 400 * time.Millisecond

var (
	mails   = Group{Name: "mails", Match: []string{"shop.order.*"}}
	tickets = Group{Name: "tickets", Match: []string{"shop.#"}}
)

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	tests := map[string]func(*suite){
		"Delivery/Whole":             (*suite).whole,
		"Delivery/FactsTravel":       (*suite).factsTravel,
		"Delivery/BodyOfEveryByte":   (*suite).bodyOfEveryByte,
		"Routing/OneGroup":           (*suite).oneGroup,
		"Routing/EveryMatch":         (*suite).everyMatch,
		"Routing/Unmatched":          (*suite).unmatched,
		"Routing/Parked":             (*suite).parked,
		"Routing/UnroutedToOneGroup": (*suite).unroutedByName,
		"Settle/Ack":                 (*suite).ack,
		"Settle/AckTwice":            (*suite).ackTwice,
		"Settle/AckManyAtOnce":       (*suite).ackMany,
		"Settle/UnsettledComesAgain": (*suite).unsettled,
		"Settle/Requeue":             (*suite).requeue,
		"Settle/RequeueMany":         (*suite).requeueMany,
		"Settle/Bury":                (*suite).bury,
		"Settle/OtherSubscription":   (*suite).otherSubscription,
		"Retry/NotBeforeDue":         (*suite).notBeforeDue,
		"Retry/Short":                (*suite).retryShort,
		"Retry/DueAlready":           (*suite).retryPast,
		"Retry/SendWithDue":          (*suite).sendWithDue,
		"Retry/HoldsUpNobody":        (*suite).retryHoldsUpNobody,
		"Stream/Prefetch":            (*suite).prefetch,
		"Stream/Shared":              (*suite).shared,
		"Stream/StopThenSettle":      (*suite).stopThenSettle,
		"Stream/StopGivesBackRest":   (*suite).stopGivesBack,
		"Stream/CloseTwice":          (*suite).closeTwice,
		"Stream/Load":                (*suite).load,
		"Restart/KeepsEverything":    (*suite).restart,
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*wait)
			defer cancel()
			s := &suite{T: t, h: h, ctx: ctx}
			s.q = h.Open(t, mails, tickets)
			tests[name](s)
		})
	}
}

// suite is one test with its queue.
type suite struct {
	*testing.T
	h   Harness
	q   Opened
	ctx context.Context
}

// event makes an event that both groups match.
func event(id string) hookonce.Event {
	return hookonce.Event{
		Key: hookonce.Key{Source: "shop", ID: id}, Type: "order.paid", ContentType: "application/json",
		Body: []byte(`{"id":"` + id + `"}`), ReceivedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
}

func first(id string) wire.Delivery { return wire.Delivery{Event: event(id)} }

func (s *suite) send(group string, ds ...wire.Delivery) {
	s.Helper()
	for _, d := range ds {
		if err := s.q.Send(s.ctx, group, d); err != nil {
			s.Fatalf("send %s to %q: %v", d.Key, group, err)
		}
	}
}

// subscribe subscribes until the test ends.
func (s *suite) subscribe(group string, prefetch int) queue.Subscription {
	s.Helper()
	sub, err := s.q.Subscribe(s.ctx, group, prefetch)
	if err != nil {
		s.Fatalf("subscribe to %s: %v", group, err)
	}
	s.Cleanup(func() { _ = sub.Close() })
	return sub
}

func (s *suite) close(sub queue.Subscription) {
	s.Helper()
	if err := sub.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// next waits for a delivery.
func (s *suite) next(sub queue.Subscription) queue.Received {
	s.Helper()
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case r, ok := <-sub.C():
		if !ok {
			s.Fatalf("the subscription ended: %v", sub.Err())
		}
		if r.Invalid != nil {
			s.Fatalf("invalid: %v", r.Invalid)
		}
		return r
	case <-t.C:
		s.Fatalf("nothing delivered within %v", wait)
	}
	return queue.Received{}
}

// nextN waits for n deliveries and returns their ids, sorted.
func (s *suite) nextN(sub queue.Subscription, n int) ([]queue.Received, []string) {
	s.Helper()
	var rs []queue.Received
	var ids []string
	for range n {
		r := s.next(sub)
		rs, ids = append(rs, r), append(ids, r.Key.ID)
	}
	slices.Sort(ids)
	return rs, ids
}

// nothing makes sure that no delivery comes.
func (s *suite) nothing(sub queue.Subscription) {
	s.Helper()
	t := time.NewTimer(quietFor)
	defer t.Stop()
	select {
	case r, ok := <-sub.C():
		if !ok {
			s.Fatalf("the subscription ended: %v", sub.Err())
		}
		s.Fatalf("%s was delivered", r.Key)
	case <-t.C:
	}
}

// empty makes sure that a group has nothing left, by a fresh subscription.
func (s *suite) empty(group string) {
	s.Helper()
	sub := s.subscribe(group, 10)
	s.nothing(sub)
	s.close(sub)
}

func (s *suite) wantIDs(got []string, want ...string) {
	s.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Fatalf("got %v, want %v", got, want)
	}
}

func ids(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%04d", prefix, i)
	}
	return out
}

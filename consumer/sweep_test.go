package consumer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/internal/wire"
)

// onRabbit puts the world's group on RabbitMQ, under a name of its own.
func (w *world) onRabbit() *rabbit.Queue {
	w.t.Helper()
	name := fmt.Sprintf("sweep-%d", time.Now().UnixNano())
	cfg := rabbit.Config{
		URLs: []string{testenv.RabbitMQ(w.t)}, Logger: slog.New(slog.DiscardHandler), Topology: rabbit.Declare,
		Groups: []rabbit.GroupTopology{{Name: name}},
	}
	moves := rabbit.NewPublisher(cfg)
	q := rabbit.NewQueue(cfg, moves)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = moves.Run(ctx) })
	wg.Go(func() { _ = q.Run(ctx) })
	w.t.Cleanup(func() { stop(); wg.Wait() })
	w.cfg.Queue, w.cfg.Groups[0].Name = q, name
	return q
}

// A copy in the .dead queue is no second truth: what was replayed or discarded
// since goes, what is dead today stays, at its generation.
func TestASweepLeavesTheCopiesOfTodaysDeadLetters(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	w := newWorld(t, consumer.Step{Name: "ticket", Tx: func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error {
		if broken.Load() || e.Key.ID == "bad-again" {
			return consumer.Permanent(errors.New("no"))
		}
		return insertTicket(ctx, tx, e)
	}})
	q := w.onRabbit()
	group := w.cfg.Groups[0].Name
	w.start()
	send := func(d wire.Delivery) {
		t.Helper()
		if err := q.Send(t.Context(), group, d); err != nil {
			t.Fatal(err)
		}
	}
	events := map[string]wire.Delivery{}
	for _, id := range []string{"replayed-1", "replayed-2", "discarded", "bad-again", "dead-1", "dead-2"} {
		d := wire.Delivery{Event: hookonce.Event{Key: hookonce.Key{Source: "shop", ID: id}, Type: "order.paid", Body: []byte(`{}`), ReceivedAt: time.Now()}}
		events[id] = d
		send(d)
	}
	for _, d := range events {
		w.waitState(d.Key, group, inbox.Dead)
	}
	length := func() int {
		n, err := q.DeadLength(t.Context(), group)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	w.eventually("all copies are there", func() bool { return length() == 6 })
	broken.Store(false)
	for _, id := range []string{"replayed-1", "replayed-2", "bad-again"} {
		d := events[id]
		d.Generation = 1
		send(d)
	}
	if _, err := w.inbox.Discard(t.Context(), "no", inbox.Target{Group: group, Key: events["discarded"].Key}); err != nil {
		t.Fatal(err)
	}
	w.waitState(events["replayed-1"].Key, group, inbox.Done)
	w.waitState(events["replayed-2"].Key, group, inbox.Done)
	w.eventually("it is dead again", func() bool {
		l, err := w.inbox.Letter(t.Context(), group, events["bad-again"].Key)
		return err == nil && l.Generation == 1
	})
	w.eventually("its second copy is there", func() bool { return length() == 7 })
	for _, want := range []int{4, 0} { // bad-again's first copy is outdated too
		removed, err := w.consumer.SweepDead(t.Context(), q, group)
		if err != nil || removed != want {
			t.Errorf("removed %d, %v; want %d", removed, err, want)
		}
		w.eventually("three copies are left", func() bool { return length() == 3 })
	}
	// An operator shovels one back: it runs once more, and once only.
	sub, err := q.SubscribeDead(t.Context(), group, 10)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r := <-sub.C()
		if r.Key.ID != "dead-1" {
			continue
		}
		send(r.Delivery)
		send(r.Delivery)
	}
	if err := sub.Close(); err != nil {
		t.Fatal(err)
	}
	w.waitState(events["dead-1"].Key, group, inbox.Done)
	if n := w.tickets("dead-1"); n != 1 {
		t.Errorf("%d tickets", n)
	}
}

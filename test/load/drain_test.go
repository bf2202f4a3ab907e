package load_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/wire"
)

// drains are the stores whose outboxes are drained.
func drains() []row {
	var list []row
	for _, s := range stores {
		if s.fsync != "always" && s.store != "hybrid" { // they drain as their outbox does
			list = append(list, row{name: s.name, set: setup{Store: s.store, Fsync: s.fsync, Broker: true}})
		}
	}
	return list
}

// drainTable fills an outbox of each store and lets a relay of a process of its
// own empty it, between two measurements of the rate at which the broker
// confirms the same messages from memory.
func drainTable(ctx context.Context, s *servers, events int) error {
	fmt.Printf("an outbox of %d events drained into a quorum queue\n\n%-16s %10s %10s %8s %12s\n", events, "store", "events/s", "raw/s", "ratio", "peak memory")
	for _, r := range drains() {
		set, err := s.complete(r.set)
		if err != nil {
			return err
		}
		set.Events = events
		if _, _, err := runKind(ctx, set, "fill"); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		raw := set
		raw.Events = min(events, 100_000)
		before, _, err1 := runKind(ctx, raw, "raw")
		set.Keep = true
		rate, memory, err2 := runKind(ctx, set, "drain")
		after, _, err3 := runKind(ctx, raw, "raw")
		if err := errors.Join(err1, err2, err3); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		rawRate := (before + after) / 2
		fmt.Printf("%-16s %10.0f %10.0f %8.2f %8.0f MiB\n", r.name, rate, rawRate, rate/rawRate, memory)
	}
	return nil
}

// runKind lets a child do its events; rate is how many it did a second.
func runKind(ctx context.Context, set setup, kind string) (rate, memory float64, err error) {
	set.Kind = kind
	c, err := startChild(ctx, set)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if *flagProfile != "" {
		if _, err := c.ask("profile " + profileFile(kind+" "+set.Store)); err != nil {
			return 0, 0, err
		}
	}
	start := time.Now()
	if _, err := c.ask("work"); err != nil {
		return 0, 0, err
	}
	rate = float64(set.Events) / time.Since(start).Seconds()
	if *flagProfile != "" {
		if _, err := c.ask("endprofile"); err != nil {
			return 0, 0, err
		}
	}
	memory, err = c.number("memory")
	return rate, memory, err
}

func event(n int) hookonce.Event {
	return hookonce.Event{
		Key: hookonce.Key{Source: sourceName, ID: fmt.Sprintf("drain-%012d", n)}, Type: "order.paid", ContentType: "application/json", Body: body,
		Header:     map[string]string{"User-Agent": "Example/1.0 (+https://example.com/webhooks)", "Accept": "*/*", "Content-Type": "application/json"},
		ReceivedAt: time.Now(),
	}
}

// serveFill claims events in batches.
func serveFill(ctx context.Context, s *served, set setup) error {
	s.handler = http.NotFoundHandler()
	set.Broker = false
	p, err := openProduct(ctx, s, set)
	if err != nil {
		return err
	}
	s.commands["work"] = func(ctx context.Context) (string, error) {
		for n := 0; n < set.Events; {
			var claims []hookonce.Claim
			for ; len(claims) < 200 && n < set.Events; n++ {
				claims = append(claims, hookonce.Claim{
					Event: event(n), Token: hookonce.NewToken(), Answer: hookonce.Answer{Status: http.StatusOK}, TTL: time.Hour,
				})
			}
			out, err := p.store.Claim(ctx, claims)
			if err != nil {
				return "", err
			}
			for _, c := range out {
				if c.Err != nil || c.Outcome != hookonce.New {
					return "", errors.Join(errors.New("an event was not new"), c.Err)
				}
			}
		}
		return "ok", nil
	}
	return nil
}

// serveDrain empties the outbox that it finds.
func serveDrain(ctx context.Context, s *served, set setup) error {
	s.handler = http.NotFoundHandler()
	p, err := openProduct(ctx, s, set)
	if err != nil {
		return err
	}
	s.commands["work"] = func(ctx context.Context) (string, error) {
		if _, err := s.commands["relay"](ctx); err != nil {
			return "", err
		}
		return p.empty(ctx)
	}
	return nil
}

// serveRaw publishes the same messages from memory, on two channels with a
// window of 1000 each, as the publisher does, with nothing around it.
func serveRaw(_ context.Context, s *served, set setup) error {
	s.handler = http.NotFoundHandler()
	const queue = "load.raw"
	var channels []*amqp.Channel
	ch, err := openQueue(s, set.AMQP, queue)
	if err != nil {
		return err
	}
	conn, err := amqp.Dial(set.AMQP)
	if err != nil {
		return err
	}
	s.onClose(conn.Close)
	s.onClose(func() error { _, err := ch.QueueDelete(queue, false, false, false); return err })
	for range 2 {
		one, err := conn.Channel()
		if err != nil {
			return err
		}
		if err := one.Confirm(false); err != nil {
			return err
		}
		channels = append(channels, one)
	}
	s.commands["work"] = func(ctx context.Context) (string, error) { return "ok", publishRaw(ctx, channels, queue, set.Events) }
	return nil
}

func publishRaw(ctx context.Context, channels []*amqp.Channel, queue string, events int) error {
	m := wire.Encode(wire.Delivery{Event: event(0)})
	message := amqp.Publishing{
		Headers: m.Headers, ContentType: m.ContentType, DeliveryMode: amqp.Persistent, MessageId: m.MessageID,
		Timestamp: m.Timestamp, Type: m.Type, AppId: m.AppID, Body: m.Body,
	}
	var left atomic.Int64
	left.Store(int64(events))
	results := make(chan error, len(channels))
	for _, ch := range channels {
		go func() {
			window := make(chan *amqp.DeferredConfirmation, 1000)
			go func() {
				defer close(window)
				for left.Add(-1) >= 0 {
					c, err := ch.PublishWithDeferredConfirmWithContext(ctx, "", queue, true, false, message)
					if err != nil {
						results <- err
						return
					}
					window <- c
				}
			}()
			for c := range window {
				if !c.Wait() {
					results <- errors.New("not confirmed")
					return
				}
			}
			results <- nil
		}()
	}
	var err error
	for range channels {
		err = errors.Join(err, <-results)
	}
	return err
}

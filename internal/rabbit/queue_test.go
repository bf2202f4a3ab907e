package rabbit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/hookonce/hookonce/internal/queue"
	"github.com/hookonce/hookonce/internal/queue/queuetest"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/internal/wire"
)

// startQueue runs a queue and the publisher it needs.
func startQueue(t testing.TB, cfg rabbit.Config) (q *rabbit.Queue, stop func()) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = quiet
	}
	p := rabbit.NewPublisher(cfg)
	stopPublisher := start(t, p)
	q = rabbit.NewQueue(cfg, p)
	stopQueue := start(t, q)
	return q, func() { stopQueue(); stopPublisher() }
}

func TestConformance(t *testing.T) {
	queuetest.Run(t, queuetest.Harness{
		Open: func(t *testing.T, groups ...queuetest.Group) queuetest.Opened {
			cfg := rabbit.Config{URLs: []string{testenv.RabbitMQ(t)}}
			for _, g := range groups {
				cfg.Groups = append(cfg.Groups, rabbit.GroupTopology{Name: g.Name, Bindings: g.Match})
			}
			q, stop := startQueue(t, cfg)
			return queuetest.Opened{Queue: q, Restart: func() queue.Queue {
				stop()
				q, _ := startQueue(t, cfg)
				return q
			}}
		},
	})
}

func subscribe(t testing.TB, q *rabbit.Queue, group string) queue.Subscription {
	t.Helper()
	sub, err := q.Subscribe(testContext(t), group, 10)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close() })
	return sub
}

func receive(t testing.TB, sub queue.Subscription) queue.Received {
	t.Helper()
	select {
	case r, ok := <-sub.C():
		if !ok {
			t.Fatalf("ended: %v", sub.Err())
		}
		return r
	case <-testContext(t).Done():
		t.Fatal("nothing was delivered")
	}
	return queue.Received{}
}

func TestForeignMessages(t *testing.T) {
	url := testenv.RabbitMQ(t)
	q, _ := startQueue(t, shop(url))
	sub := subscribe(t, q, "shop")
	ch := operator(t, url)
	put := func(p amqp.Publishing) queue.Received {
		t.Helper()
		if err := ch.PublishWithContext(testContext(t), "", "hookonce.shop", true, false, p); err != nil {
			t.Fatal(err)
		}
		r := receive(t, sub)
		if err := sub.Ack(testContext(t), r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := put(amqp.Publishing{MessageId: "order-1", Type: "order.paid", Body: []byte("x"), Headers: amqp.Table{"hookonce-attempt": int32(2)}})
	if r.Invalid != nil || r.Key.String() != "-/order-1" || r.Attempt != 2 || r.Type != "order.paid" || time.Since(r.ReceivedAt) > limit {
		t.Errorf("foreign: %+v", r)
	}
	r = put(amqp.Publishing{Body: []byte("who am I?")})
	if !errors.Is(r.Invalid, wire.ErrIdentity) || string(r.Body) != "who am I?" {
		t.Errorf("without an id: %+v", r)
	}
	// An invalid message is handed out whatever its time: nobody could say when.
	r = put(amqp.Publishing{Headers: amqp.Table{"hookonce-due": time.Now().Add(time.Hour).Format(time.RFC3339)}})
	if r.Invalid == nil {
		t.Errorf("invalid with a time: %+v", r)
	}
}

func TestRetryUsesTheLargestBucketThatFits(t *testing.T) {
	url := testenv.RabbitMQ(t)
	q, _ := startQueue(t, shop(url))
	sub := subscribe(t, q, "shop")
	ch, ctx := operator(t, url), testContext(t)
	for i, c := range []struct {
		wait   time.Duration
		bucket string
	}{
		{9 * time.Second, "5s"},
		{31 * time.Second, "30s"},
		{5 * time.Minute, "2m"},
		{time.Hour + time.Minute, "1h"},
		{100 * time.Hour, "6h"},
	} {
		d := wire.Delivery{}
		d.Key.Source, d.Key.ID = "shop", fmt.Sprint(i)
		if err := q.Send(ctx, "shop", d); err != nil {
			t.Fatal(err)
		}
		r := receive(t, sub)
		d.Due = time.Now().Add(c.wait)
		if err := sub.Retry(ctx, r, d); err != nil {
			t.Fatal(err)
		}
		if n := length(t, ch, "hookonce.shop.retry."+c.bucket); n != 1 {
			t.Errorf("%v: %d in bucket %s", c.wait, n, c.bucket)
		}
	}
	depths, err := q.Depths(ctx, []string{"shop", "-", "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	if len(depths) != 2 || depths["shop"].Retrying != 5 {
		t.Errorf("depths %+v", depths)
	}
}

// A message that is due much later, and comes early because its bucket is
// shorter, goes round again without anybody seeing it.
func TestHop(t *testing.T) {
	url := testenv.RabbitMQ(t)
	q, _ := startQueue(t, shop(url))
	sub := subscribe(t, q, "shop")
	d := wire.Delivery{Attempt: 4, Due: time.Now().Add(40 * time.Second)}
	d.Key.Source, d.Key.ID = "shop", "1"
	if err := q.Send(testContext(t), "shop", d); err != nil {
		t.Fatal(err)
	}
	ch := operator(t, url)
	eventually(t, "the message is in its bucket", func() bool { return length(t, ch, "hookonce.shop.retry.30s") == 1 })
	got, ok, err := ch.Get("hookonce.shop.retry.30s", true)
	if err != nil || !ok || got.Headers["hookonce-attempt"] != int64(4) {
		t.Errorf("hopped as %+v, %v", got.Headers, err)
	}
	select {
	case r := <-sub.C():
		t.Errorf("%s was handed out early", r.Key)
	default:
	}
}

func TestBuryPutsACopyIntoTheDeadQueue(t *testing.T) {
	url := testenv.RabbitMQ(t)
	q, _ := startQueue(t, shop(url))
	sub := subscribe(t, q, "shop")
	ctx := testContext(t)
	d := wire.Delivery{}
	d.Key.Source, d.Key.ID = "shop", "1"
	if err := q.Send(ctx, "shop", d); err != nil {
		t.Fatal(err)
	}
	r := receive(t, sub)
	d = r.Delivery
	d.Reason, d.Attempt = "failed", 12
	if err := sub.Bury(ctx, r, d); err != nil {
		t.Fatal(err)
	}
	got, ok, err := operator(t, url).Get("hookonce.shop.dead", true)
	if err != nil || !ok || got.Headers["hookonce-dead"] != "failed" || got.Headers["hookonce-attempt"] != int64(12) {
		t.Errorf("buried as %+v, %v", got.Headers, err)
	}
}

func TestSubscriptionEndsWithItsConnection(t *testing.T) {
	through, url := startProxy(t, testenv.RabbitMQ(t))
	q, _ := startQueue(t, shop(url))
	ctx := testContext(t)
	d := wire.Delivery{}
	d.Key.Source, d.Key.ID = "shop", "1"
	if err := q.Send(ctx, "shop", d); err != nil {
		t.Fatal(err)
	}
	sub := subscribe(t, q, "shop")
	r := receive(t, sub)
	through.cut()
	if _, ok := <-sub.C(); ok || sub.Err() == nil {
		t.Fatalf("the stream goes on, or does not say why it ended: %v", sub.Err())
	}
	if err := sub.Ack(ctx, r); err == nil {
		t.Error("an ack on a dead channel is no error")
	}
	if err := sub.Retry(ctx, r, r.Delivery); err == nil {
		t.Error("a move on a dead channel is no error")
	}
	if err := sub.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	// The ack of the old delivery must not touch the new one, which has the same
	// tag on its channel.
	again := subscribe(t, q, "shop")
	if got := receive(t, again); got.Key != r.Key {
		t.Fatalf("got %v", got.Key)
	}
	_ = sub.Ack(ctx, r)
	_ = again.Ack(ctx, r)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, subscribe(t, q, "shop")); got.Key != r.Key {
		t.Fatalf("got %v", got.Key)
	}
}

func TestSubscriptionEndsWithItsQueue(t *testing.T) {
	url := testenv.RabbitMQ(t)
	q, _ := startQueue(t, shop(url))
	sub := subscribe(t, q, "shop")
	if _, err := operator(t, url).QueueDelete("hookonce.shop", false, false, false); err != nil {
		t.Fatal(err)
	}
	if _, ok := <-sub.C(); ok {
		t.Fatal("delivered")
	}
	if err := sub.Err(); err == nil || !strings.Contains(err.Error(), "hookonce.shop") {
		t.Errorf("Err: %v", err)
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
	if _, err := q.Subscribe(testContext(t), "shop", 10); err == nil {
		t.Error("subscribed to a queue that does not exist")
	}
}

func TestSubscribeWaitsForTheConnection(t *testing.T) {
	cfg := rabbit.Config{URLs: []string{"amqp://guest:guest@127.0.0.1:1/"}}
	q, stop := startQueue(t, cfg)
	if _, err := q.Subscribe(shortContext(t, 50*time.Millisecond), "shop", 10); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	stop()
	if _, err := q.Subscribe(testContext(t), "shop", 10); !errors.Is(err, rabbit.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestUnbind(t *testing.T) {
	url := testenv.RabbitMQ(t)
	cfg := shop(url)
	cfg.Groups[0].Bindings = nil // the configuration has lost the pattern
	q, _ := startQueue(t, cfg)
	ctx := testContext(t)
	if _, err := q.Depths(ctx, nil); err != nil { // connected and declared
		t.Fatal(err)
	}
	if err := operator(t, url).QueueBind("hookonce.shop", "shop.order.#", rabbit.Exchange, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := q.Unbind(ctx, "shop", "shop.order.#", "never.bound"); err != nil {
		t.Fatal(err)
	}
	d := wire.Delivery{}
	d.Key.Source, d.Key.ID, d.Type = "shop", "1", "order.paid"
	if err := q.Send(ctx, "", d); err != nil {
		t.Fatal(err)
	}
	if r := receive(t, subscribe(t, q, queue.Unrouted)); r.Key != d.Key {
		t.Errorf("got %v", r.Key)
	}
}

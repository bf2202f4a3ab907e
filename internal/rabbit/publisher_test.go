package rabbit_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/internal/wire"
)

func message(id string) wire.Message {
	return wire.Encode(wire.Delivery{Event: hookonce.Event{
		Key: hookonce.Key{Source: "shop", ID: id}, Type: "order.paid", Body: []byte(`{"id":"` + id + `"}`),
		ContentType: "application/json", ReceivedAt: time.Now(),
	}})
}

func shop(url string) rabbit.Config {
	return rabbit.Config{URLs: []string{url}, Groups: []rabbit.GroupTopology{{Name: "shop", Bindings: []string{"shop.order.#"}}}}
}

func TestPublish(t *testing.T) {
	url := testenv.RabbitMQ(t)
	p := startPublisher(t, shop(url))
	ctx, ch := testContext(t), operator(t, url)

	if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("1")); err != nil {
		t.Fatal(err)
	}
	got, ok, err := ch.Get("hookonce.shop", true)
	if err != nil || !ok {
		t.Fatalf("nothing in the queue: %v", err)
	}
	if got.MessageId != "shop/1" || got.Type != "order.paid" || got.AppId != "hookonce" || got.DeliveryMode != amqp.Persistent ||
		got.ContentType != "application/json" || got.Headers["hookonce-key"] != "shop/1" || string(got.Body) != `{"id":"1"}` {
		t.Errorf("arrived as %+v", got)
	}

	t.Run("nobody wants it", func(t *testing.T) {
		if err := p.Publish(ctx, rabbit.Exchange, "bank.transfer", message("2")); err != nil {
			t.Fatal(err)
		}
		got, ok, err := ch.Get("hookonce.unrouted", true)
		if err != nil || !ok || got.Exchange != "hookonce.events" || got.RoutingKey != "bank.transfer" {
			t.Fatalf("unrouted: %+v, %v, %v", got, ok, err)
		}
	})
	t.Run("no queue", func(t *testing.T) {
		if err := p.Publish(ctx, "", "hookonce.nobody", message("3")); !errors.Is(err, rabbit.ErrUnroutable) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("refused by a full queue", func(t *testing.T) {
		if _, err := ch.QueueDeclare("full", true, false, false, false, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"}); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(ctx, "", "full", message("4")); err != nil {
			t.Fatal(err)
		}
		if err := p.Publish(ctx, "", "full", message("5")); !errors.Is(err, rabbit.ErrNacked) {
			t.Fatalf("got %v", err)
		}
	})
	t.Run("what AMQP cannot carry", func(t *testing.T) {
		bad := message("6")
		bad.MessageID = fmt.Sprintf("%0256d", 1)
		if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", bad); !errors.Is(err, rabbit.ErrRefused) {
			t.Errorf("long message id: %v", err)
		}
		bad = message("6")
		bad.Headers["x"] = struct{}{}
		if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", bad); !errors.Is(err, rabbit.ErrRefused) {
			t.Errorf("bad header: %v", err)
		}
		bad = message("6")
		bad.Headers["x"] = make([]byte, 1<<20)
		if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", bad); !errors.Is(err, rabbit.ErrRefused) {
			t.Errorf("headers over a frame: %v", err)
		}
	})
}

func TestSendTellsEveryResultOnce(t *testing.T) {
	url := testenv.RabbitMQ(t)
	through, viaProxy := startProxy(t, url)
	cfg := shop(viaProxy)
	cfg.Window = 50
	p := startPublisher(t, cfg)
	ctx := testContext(t)

	const n = 5000
	var confirmed, unconfirmed atomic.Int64
	var all sync.WaitGroup
	told := make([]atomic.Int32, n)
	all.Add(n)
	for i := range n {
		p.Send(ctx, rabbit.Exchange, "shop.order.paid", message(fmt.Sprint(i)), func(err error) {
			defer all.Done()
			told[i].Add(1)
			switch {
			case err == nil:
				confirmed.Add(1)
			case errors.Is(err, rabbit.ErrUnconfirmed):
				unconfirmed.Add(1)
			default:
				t.Errorf("%d: %v", i, err)
			}
		})
		if i == 1500 || i == 3000 {
			through.cut()
		}
	}
	all.Wait()
	for i := range told {
		if told[i].Load() != 1 {
			t.Errorf("%d: told %d times", i, told[i].Load())
		}
	}
	t.Logf("confirmed %d, unconfirmed %d", confirmed.Load(), unconfirmed.Load())
	if unconfirmed.Load() == 0 {
		t.Error("the lost connections were not noticed")
	}
	if got := int64(length(t, operator(t, url), "hookonce.shop")); got < confirmed.Load() || got > n {
		t.Errorf("%d in the queue, %d confirmed of %d", got, confirmed.Load(), n)
	}
}

func TestReturnsAreTakenFromTheirConfirms(t *testing.T) {
	p := startPublisher(t, shop(testenv.RabbitMQ(t)))
	ctx := testContext(t)
	var all sync.WaitGroup
	for i := range 3000 {
		exchange, key := rabbit.Exchange, "shop.order.paid"
		missing := i%3 == 0
		if missing {
			exchange, key = "", "hookonce.nobody"
		}
		all.Add(1)
		p.Send(ctx, exchange, key, message(fmt.Sprint(i)), func(err error) {
			defer all.Done()
			if missing != errors.Is(err, rabbit.ErrUnroutable) || !missing && err != nil {
				t.Errorf("%d: %v", i, err)
			}
		})
	}
	all.Wait()
}

func TestPoisonTakesNobodyAlong(t *testing.T) {
	url := testenv.RabbitMQ(t)
	p := startPublisher(t, shop(url))
	ctx := testContext(t)

	// RabbitMQ closes the channel of a message whose CC header is no list.
	poison := message("poison")
	poison.Headers["CC"] = "not a list"
	var all sync.WaitGroup
	var suspects sync.Map
	send := func(m wire.Message) {
		all.Add(1)
		p.Send(ctx, rabbit.Exchange, "shop.order.paid", m, func(err error) {
			defer all.Done()
			if errors.Is(err, rabbit.ErrSuspect) {
				if !errors.Is(err, rabbit.ErrUnconfirmed) {
					t.Errorf("a suspect is not unconfirmed: %v", err)
				}
				suspects.Store(m.MessageID, m)
			} else if err != nil && !errors.Is(err, rabbit.ErrUnconfirmed) {
				t.Errorf("%s: %v", m.MessageID, err)
			}
		})
	}
	for i := range 200 {
		send(message(fmt.Sprint(i)))
		if i == 100 {
			send(poison)
		}
	}
	all.Wait()
	if _, ok := suspects.Load("shop/poison"); !ok {
		t.Fatal("the guilty message is no suspect")
	}
	suspects.Range(func(id, m any) bool {
		err := p.SendAlone(ctx, rabbit.Exchange, "shop.order.paid", m.(wire.Message))
		if guilty := id == "shop/poison"; guilty != errors.Is(err, rabbit.ErrRefused) || !guilty && err != nil {
			t.Errorf("%s alone: %v", id, err)
		}
		return true
	})
	if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("after")); err != nil {
		t.Error(err)
	}
}

func TestNoConfirm(t *testing.T) {
	through, url := startProxy(t, testenv.RabbitMQ(t))
	cfg := shop(url)
	cfg.ConfirmTimeout = 500 * time.Millisecond
	cfg.Window = 4
	p := startPublisher(t, cfg)
	ctx := testContext(t)
	eventually(t, "a publish is confirmed", func() bool { // also, the channels are open then
		return p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("1")) == nil
	})
	through.setDeaf(true)
	if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("1")); !errors.Is(err, rabbit.ErrUnconfirmed) {
		t.Errorf("got %v", err)
	}
	through.setDeaf(false)
	through.cut()
	eventually(t, "a publish is confirmed again", func() bool {
		return p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("1")) == nil
	})
}

func TestSendWithoutBroker(t *testing.T) {
	p := rabbit.NewPublisher(rabbit.Config{URLs: []string{"amqp://guest:s3cret@127.0.0.1:1/"}, Logger: quiet})
	stop := start(t, p)
	ctx, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
	defer cancel()
	result := make(chan error, 2)
	p.Send(ctx, rabbit.Exchange, "k", message("1"), func(err error) { result <- err })
	if err := <-result; !errors.Is(err, rabbit.ErrUnconfirmed) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if p.Connected() {
		t.Error("connected to nothing")
	}
	stop()
	p.Send(testContext(t), rabbit.Exchange, "k", message("1"), func(err error) { result <- err })
	if err := <-result; !errors.Is(err, rabbit.ErrUnconfirmed) || !errors.Is(err, rabbit.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	if err := p.SendAlone(testContext(t), rabbit.Exchange, "k", message("1")); !errors.Is(err, rabbit.ErrClosed) {
		t.Errorf("alone after the end: %v", err)
	}
}

func TestDrain(t *testing.T) {
	url := testenv.RabbitMQ(t)
	p := rabbit.NewPublisher(rabbit.Config{URLs: shop(url).URLs, Groups: shop(url).Groups, Logger: quiet})
	stop := start(t, p)
	ctx := testContext(t)
	var confirmed atomic.Int64
	for i := range 2000 {
		p.Send(ctx, rabbit.Exchange, "shop.order.paid", message(fmt.Sprint(i)), func(err error) {
			if err == nil {
				confirmed.Add(1)
			}
		})
	}
	if err := p.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	stop()
	if confirmed.Load() != 2000 {
		t.Errorf("%d confirmed", confirmed.Load())
	}
}

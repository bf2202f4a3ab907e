package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/telemetry"
	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/internal/wire"
	"github.com/hookonce/hookonce/publisher"
)

var quiet = slog.New(slog.DiscardHandler)

func order(id string) hookonce.Event {
	return hookonce.Event{Key: hookonce.Key{Source: "shop", ID: id}, Type: "order.paid", Body: []byte(id), ReceivedAt: time.Now()}
}

func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

// lengths is how many messages the queues hold.
func lengths(t *testing.T, url string) map[string]rabbit.Depth {
	t.Helper()
	p := rabbit.NewPublisher(rabbit.Config{URLs: []string{url}, Logger: quiet})
	q := rabbit.NewQueue(rabbit.Config{URLs: []string{url}, Topology: rabbit.Assume, Logger: quiet}, p)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.Run(run) }()
	depths, err := q.Depths(ctx, []string{"shop", "-"})
	stop()
	<-ended
	if err != nil {
		t.Fatal(err)
	}
	return depths
}

func start(t *testing.T, cfg publisher.Config) (*publisher.Publisher, *telemetry.Metrics) {
	t.Helper()
	cfg.Logger, cfg.Metrics = quiet, telemetry.NewMetrics(nil)
	cfg.Groups = []publisher.Group{{Name: "shop", Bindings: []string{"shop.#"}}}
	p := publisher.New(cfg)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p, cfg.Metrics
}

func TestPublishToTheBroker(t *testing.T) {
	url := testenv.RabbitMQ(t)
	p, metrics := start(t, publisher.Config{URLs: []string{url}})
	if err := p.Start(t.Context()); !errors.Is(err, publisher.ErrStarted) {
		t.Errorf("started twice: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	parked := order("3")
	parked.Parked = "no key"
	nobody := order("2")
	nobody.Key.Source = "bank"
	for _, e := range []hookonce.Event{order("1"), nobody, parked} {
		if err := p.Publish(ctx, e); err != nil {
			t.Errorf("%s: %v", e.Key, err)
		}
	}
	if err := p.SendAlone(ctx, order("4")); err != nil {
		t.Error(err)
	}
	got := lengths(t, url)
	if got["shop"].Ready != 2 || got["-"].Ready != 2 {
		t.Errorf("queues hold %+v", got)
	}
	if n := value(t, metrics.Published.WithLabelValues("confirmed")); n != 4 {
		t.Errorf("%v counted as confirmed", n)
	}
	if !p.Connected() || value(t, metrics.BrokerUp) != 1 {
		t.Error("not up")
	}
}

func TestRelayToTheBroker(t *testing.T) {
	url := testenv.RabbitMQ(t)
	p, _ := start(t, publisher.Config{URLs: []string{url}})
	b := &box{}
	for i := range 300 {
		b.addEvent(order(fmt.Sprint("before-", i)))
	}
	r := publisher.NewRelay(publisher.RelayConfig{Outbox: b, Sender: p, Logger: quiet})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for i := range 700 {
		r.Offer(b.addEvent(order(fmt.Sprint(i))))
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); b.size() > 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d entries left", b.size())
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := lengths(t, url)["shop"].Ready; got != 1000 {
		t.Errorf("%d in the queue", got)
	}
}

func TestCloseWaitsForConfirms(t *testing.T) {
	url := testenv.RabbitMQ(t)
	cfg := publisher.Config{URLs: []string{url}, Logger: quiet, Groups: []publisher.Group{{Name: "shop", Bindings: []string{"shop.#"}}}}
	p := publisher.New(cfg)
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("closed before the start: %v", err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var confirmed atomic.Int32
	for i := range 500 {
		p.Send(ctx, order(fmt.Sprint(i)), func(err error) {
			if err == nil {
				confirmed.Add(1)
			}
		})
	}
	if err := p.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if confirmed.Load() != 500 {
		t.Errorf("%d confirmed", confirmed.Load())
	}
	if err := p.Publish(ctx, order("late")); !errors.Is(err, publisher.ErrUnconfirmed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestEventsTravelWhole(t *testing.T) {
	url := testenv.RabbitMQ(t)
	p, _ := start(t, publisher.Config{URLs: []string{url}})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e := order("whole")
	e.Header = map[string]string{"X-A": "1"}
	e.Context = []byte(`{"a":1}`)
	if err := p.Publish(ctx, e); err != nil {
		t.Fatal(err)
	}
	q := rabbit.NewQueue(rabbit.Config{URLs: []string{url}, Logger: quiet, Topology: rabbit.Verify, Groups: []publisher.Group{{Name: "shop"}}}, p.Broker())
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.Run(run) }()
	defer func() { stop(); <-ended }()
	sub, err := q.Subscribe(ctx, "shop", 10)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close() //nolint:errcheck // the test is over
	got := <-sub.C()
	want := wire.Delivery{Event: e}
	if got.Key != want.Key || got.Type != want.Type || string(got.Body) != "whole" || got.Header["X-A"] != "1" ||
		string(got.Context) != `{"a":1}` || !got.ReceivedAt.Equal(e.ReceivedAt) {
		t.Errorf("got %+v", got.Delivery)
	}
}

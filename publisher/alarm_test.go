package publisher_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/publisher"
)

// TestAMemoryAlarmBlocksNobodyForGood: while the broker takes nothing, offers go
// on, memory stays bounded and a shutdown ends in time; afterwards everything
// arrives without a restart.
func TestAMemoryAlarmBlocksNobodyForGood(t *testing.T) {
	const before, during = 20, 300
	broker := testenv.StartRabbitMQ(t)
	cfg := publisher.Config{URLs: []string{broker.URL}, WriteTimeout: 2 * time.Second}
	p, _ := start(t, cfg)
	b := &box{}
	const window = 64
	r := publisher.NewRelay(publisher.RelayConfig{Outbox: b, Sender: p, Logger: quiet, Window: window})
	stop := run(t, r)
	offer := func(n int) {
		for range n {
			e := order(fmt.Sprint(b.count()))
			e.Body = []byte(strings.Repeat("x", 64<<10))
			r.Offer(b.addEvent(e))
		}
	}
	offer(before)
	soon(t, "the first events are published", func() bool { return b.size() == 0 })

	broker.Control("set_vm_memory_high_watermark", "0")
	began := time.Now()
	offer(during)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("%d offers took %v while the broker takes nothing", during, took)
	}
	soon(t, "the block is known", p.Blocked)
	if inFlight, more := r.Backlog(); inFlight > window || !more {
		t.Errorf("%d in flight, more in the outbox %v; want at most %d, and more", inFlight, more, window)
	}
	shutdownDuringTheAlarm(t, cfg)

	broker.Control("set_vm_memory_high_watermark", "0.6")
	soon(t, "the outbox is empty", func() bool { return b.size() == 0 })
	stop()
	seen := consumed(t, broker.URL, before+during)
	if len(seen) != before+during {
		t.Errorf("%d events arrived, want %d", len(seen), before+during)
	}
}

// shutdownDuringTheAlarm sends until nothing goes any more, and closes.
func shutdownDuringTheAlarm(t *testing.T, cfg publisher.Config) {
	t.Helper()
	cfg.Logger = quiet
	p := publisher.New(cfg)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The broker says that it is blocked when it has got the first message.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	results := make(chan error, 200)
	for range 200 {
		e := order("during the alarm")
		e.Key.Source, e.Body = "bank", make([]byte, 64<<10)
		p.Send(ctx, e, func(err error) { results <- err })
	}
	began := time.Now()
	drain, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_ = p.Close(drain) // it says how many are unconfirmed
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("closing took %v", took)
	}
	for range 200 {
		if err := <-results; err == nil {
			t.Error("an event was confirmed during the alarm")
			return
		}
	}
}

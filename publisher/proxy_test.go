package publisher_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/telemetry"
	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/publisher"
)

// bad is what can be wrong with the way to the broker.
type bad struct {
	name, toxic string
	// slow is a way that works all the same: nothing may be published twice.
	slow bool
}

// TestRelayOverABadNetwork: whatever happens to the connection while events are
// on their way, each arrives and the outbox gets empty. Over a way that is only
// slow, each arrives once.
func TestRelayOverABadNetwork(t *testing.T) {
	for _, c := range []bad{
		{"latency", `{"type":"latency","stream":"downstream","attributes":{"latency":40,"jitter":20}}`, true},
		{"bandwidth", `{"type":"bandwidth","stream":"upstream","attributes":{"rate":200}}`, true},
		{"small pieces", `{"type":"slicer","stream":"upstream","attributes":{"average_size":7,"size_variation":3,"delay":10}}`, true},
		{"cut in the middle of a frame", `{"type":"limit_data","stream":"upstream","attributes":{"bytes":20011}}`, false},
		{"answers cut", `{"type":"limit_data","stream":"downstream","attributes":{"bytes":211}}`, false},
		{"half open", `{"type":"timeout","stream":"downstream","attributes":{"timeout":0}}`, false},
		{"nothing gets out", `{"type":"timeout","stream":"upstream","attributes":{"timeout":0}}`, false},
		{"reset", `{"type":"reset_peer","stream":"downstream","attributes":{"timeout":20}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			overABadNetwork(t, c)
		})
	}
}

func overABadNetwork(t *testing.T, c bad) {
	const before, during, after = 50, 300, 50
	direct := testenv.RabbitMQ(t)
	way, through := proxied(t, direct)
	p, metrics := start(t, publisher.Config{URLs: []string{through}, Heartbeat: time.Second, WriteTimeout: 2 * time.Second, ConfirmTimeout: 10 * time.Second})
	b := &box{}
	r := publisher.NewRelay(publisher.RelayConfig{Outbox: b, Sender: p, Logger: quiet})
	stop := run(t, r)
	events := 0
	offer := func(n int) {
		for range n {
			e := order(fmt.Sprint(events))
			e.Body = []byte(strings.Repeat("x", 200))
			r.Offer(b.addEvent(e))
			events++
		}
	}
	offer(before)
	soon(t, "the first events are published", func() bool { return b.size() == 0 })

	if _, err := way.Toxics.AddToxicJson(strings.NewReader(c.toxic)); err != nil {
		t.Fatal(err)
	}
	offer(during)
	if c.slow {
		soon(t, "everything gets through", func() bool { return b.size() == 0 })
	} else {
		soon(t, "the connection is given up", func() bool { return value(t, metrics.BrokerUp) == 0 })
	}
	way.Toxics.ResetToxics(t.Context())
	if !c.slow {
		way.Stop() // with what hangs in it
		if err := way.Start(); err != nil {
			t.Fatal(err)
		}
	}
	offer(after)
	soon(t, "the outbox is empty", func() bool { return b.size() == 0 })
	stop()

	seen := consumed(t, direct, events)
	for i := range events {
		id := fmt.Sprint(i)
		if n := seen[id]; n < 1 || c.slow && n > 1 {
			t.Errorf("event %s arrived %d times", id, n)
		}
	}
}

// proxied puts a proxy in front of a broker.
func proxied(t *testing.T, rawURL string) (*toxiproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxiproxy.NewProxy(server, "broker", "127.0.0.1:0", u.Host)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	u.Host = p.Listen
	return p, u.String()
}

// run runs a relay until stop is called.
func run(t *testing.T, r *publisher.Relay) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// consumed takes events from the group's queue until as many different ones as
// wanted have come and no more wait, and counts each.
func consumed(t *testing.T, url string, want int) map[string]int {
	t.Helper()
	cfg := rabbit.Config{URLs: []string{url}, Topology: rabbit.Assume, Logger: quiet, Metrics: telemetry.NewMetrics(nil)}
	total := lengths(t, url)["shop"].Ready
	q := rabbit.NewQueue(cfg, rabbit.NewPublisher(cfg))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	sub, err := q.Subscribe(ctx, "shop", 1000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for n := 0; n < total || len(seen) < want; n++ {
		select {
		case d := <-sub.C():
			seen[d.Key.ID]++
			if err := sub.Ack(ctx, d); err != nil {
				t.Fatal(err)
			}
		case <-limit.C:
			t.Fatalf("%d of %d messages, %d events of %d", n, total, len(seen), want)
		}
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
	return seen
}

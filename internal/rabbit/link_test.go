package rabbit_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/testenv"
)

// states collects what OnState says.
type states struct {
	mu   sync.Mutex
	errs []error // nil: up
}

func (s *states) add(_ bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

func (s *states) find(f func(error) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, err := range s.errs {
		if err != nil && f(err) {
			return err
		}
	}
	return nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}
func (b *lockedBuffer) String() string { b.mu.Lock(); defer b.mu.Unlock(); return b.b.String() }

func TestTopology(t *testing.T) {
	rawURL := testenv.RabbitMQ(t)
	startPublisher(t, shop(rawURL))
	ch := operator(t, rawURL)
	names := []string{"hookonce.unrouted", "hookonce.shop", "hookonce.shop.dead"}
	for _, d := range rabbit.Delays() {
		names = append(names, "hookonce.shop.retry."+d.Name)
	}
	for _, name := range names {
		length(t, ch, name)
	}
	// Quorum and the limit: a declaration that differs is refused.
	if _, err := ch.QueueDeclare("hookonce.shop", true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-delivery-limit": int32(2_000_000_000),
	}); err != nil {
		t.Errorf("queue arguments: %v", err)
	}
	if _, err := ch.QueueDeclare("hookonce.shop.retry.5s", true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-delivery-limit": int32(2_000_000_000), "x-message-ttl": int64(5000),
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "hookonce.shop",
		"x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish",
	}); err != nil {
		t.Errorf("bucket arguments: %v", err)
	}
	// Again, as every role does.
	startPublisher(t, shop(rawURL))
}

func TestTopologyMismatch(t *testing.T) {
	rawURL := testenv.RabbitMQ(t)
	ch := operator(t, rawURL)
	if _, err := ch.QueueDeclare("hookonce.shop", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	var seen states
	cfg := shop(rawURL)
	cfg.Logger, cfg.OnState = quiet, seen.add
	p := rabbit.NewPublisher(cfg)
	start(t, p)
	var err error
	eventually(t, "the mismatch is reported", func() bool {
		err = seen.find(func(err error) bool { return errors.Is(err, rabbit.ErrTopology) })
		return err != nil
	})
	for _, part := range []string{"queue hookonce.shop", "delete it", "broker.topology"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if p.Connected() {
		t.Error("connected in spite of it")
	}
	if _, err := ch.QueueDelete("hookonce.shop", false, false, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "connects once it is put right", p.Connected)
}

func TestVerify(t *testing.T) {
	rawURL := testenv.RabbitMQ(t)
	var seen states
	cfg := shop(rawURL)
	cfg.Topology, cfg.Logger, cfg.OnState = rabbit.Verify, quiet, seen.add
	p := rabbit.NewPublisher(cfg)
	start(t, p)
	eventually(t, "what is missing is reported", func() bool {
		return seen.find(func(err error) bool {
			return errors.Is(err, rabbit.ErrTopology) && strings.Contains(err.Error(), "does not exist")
		}) != nil
	})
	startPublisher(t, shop(rawURL)) // declares
	eventually(t, "verified", p.Connected)
}

func TestMissingQueueIsDeclaredAgain(t *testing.T) {
	rawURL := testenv.RabbitMQ(t)
	p := startPublisher(t, shop(rawURL))
	ctx, ch := testContext(t), operator(t, rawURL)
	if _, err := ch.QueueDelete("hookonce.shop.dead", false, false, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(ctx, "", "hookonce.shop.dead", message("1")); !errors.Is(err, rabbit.ErrUnroutable) {
		t.Fatalf("got %v", err)
	}
	if err := p.Publish(ctx, "", "hookonce.shop.dead", message("1")); err != nil {
		t.Fatalf("after the declaration: %v", err)
	}
}

func TestMissingExchange(t *testing.T) {
	rawURL := testenv.RabbitMQ(t)
	p := startPublisher(t, shop(rawURL))
	ctx := testContext(t)
	if err := operator(t, rawURL).ExchangeDelete(rabbit.Exchange, false, false); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("1")); !errors.Is(err, rabbit.ErrUnroutable) {
		t.Errorf("got %v", err)
	}
	eventually(t, "published once the exchange is there again", func() bool {
		return p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("1")) == nil
	})
}

func TestReconnectLogsOncePerOutage(t *testing.T) {
	server := testenv.StartRabbitMQ(t)
	var log lockedBuffer
	var seen states
	cfg := shop(server.URL)
	// Nobody listens at the first URL: the next one must be tried.
	cfg.URLs = []string{"amqp://guest:guest@127.0.0.1:1/", cfg.URLs[0]}
	cfg.Logger, cfg.OnState = slog.New(slog.NewTextHandler(&log, nil)), seen.add
	p := startPublisher(t, cfg)
	ctx := testContext(t)
	if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("1")); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	eventually(t, "the loss is noticed", func() bool { return !p.Connected() })
	server.Start()
	eventually(t, "connected again", p.Connected)
	if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("2")); err != nil {
		t.Fatal(err)
	}
	if n := length(t, operator(t, server.URL), "hookonce.shop"); n != 2 {
		t.Errorf("%d messages in the queue", n)
	}
	// One warning before the first connection, one for the outage.
	if warned := strings.Count(log.String(), "level=WARN msg=\"no connection to RabbitMQ"); warned != 2 {
		t.Errorf("%d warnings:\n%s", warned, log.String())
	}
	if up := strings.Count(log.String(), "level=INFO msg=\"connected to RabbitMQ"); up != 2 {
		t.Errorf("%d times up:\n%s", up, log.String())
	}
}

func TestSecretsStayOut(t *testing.T) {
	rawURL := testenv.RabbitMQ(t)
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("guest", "s3cret-wrong")
	for _, bad := range []string{
		u.String(),
		"amqp://guest:s3cret-wrong@127.0.0.1:1/",
		"amqp://guest:s3cret-wrong%zz@127.0.0.1/",
		"http://guest:s3cret-wrong@127.0.0.1/",
		"amqp://guest:s3cret-wrong@no-such-host.invalid/",
	} {
		var log lockedBuffer
		var seen states
		p := rabbit.NewPublisher(rabbit.Config{
			URLs: []string{bad}, OnState: seen.add,
			Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		stop := start(t, p)
		eventually(t, "the failure is reported", func() bool { return seen.find(func(error) bool { return true }) != nil })
		stop()
		if all := fmt.Sprint(log.String(), seen.errs); strings.Contains(all, "s3cret") {
			t.Errorf("the password is in: %s", all)
		}
	}
}

func TestBlockedBrokerHoldsNobody(t *testing.T) {
	p := startPublisher(t, shop(testenv.RabbitMQ(t)))
	ctx := testContext(t)
	rabbit.SetBlocked(p, true)
	done := make(chan error, 1)
	p.Send(shortContext(t, 100*time.Millisecond), rabbit.Exchange, "shop.order.paid", message("1"), func(err error) { done <- err })
	if err := <-done; !errors.Is(err, rabbit.ErrUnconfirmed) {
		t.Fatalf("sent to a blocked broker: %v", err)
	}
	rabbit.SetBlocked(p, false)
	if err := p.Publish(ctx, rabbit.Exchange, "shop.order.paid", message("1")); err != nil {
		t.Fatal(err)
	}
}

func TestWriteDeadline(t *testing.T) {
	ours, theirs := net.Pipe() // nobody reads: a write never returns by itself
	defer theirs.Close()       //nolint:errcheck // a pipe of the test
	defer ours.Close()         //nolint:errcheck // a pipe of the test
	conn := rabbit.DeadlineConn(ours, 20*time.Millisecond)
	if _, err := conn.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	conn = rabbit.DeadlineConn(ours, time.Hour)
	if err := conn.SetDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an earlier deadline from outside: %v", err)
	}
}

package testenv

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

// startTimeout is how long a server may take to answer; a cold RabbitMQ on a
// busy machine takes the most.
const startTimeout = 3 * time.Minute

// Redis returns the URL of a Redis that is empty and the test's own:
// a private server, or one database of HOOKONCE_TEST_REDIS_URL.
func Redis(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := server.Open(ctx, server.Redis)
	if err != nil {
		t.Fatal(err)
	}
	if s.Shared {
		return leaseDatabase(ctx, t, s.URL)
	}
	t.Cleanup(func() { closeServer(t, s) })
	return s.URL
}

// Postgres returns the DSN of a new database, dropped when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	return createDatabase(t, postgres.get(t).URL)
}

// RabbitMQ returns the AMQP URL of a new vhost, deleted when the test ends.
func RabbitMQ(t testing.TB) string {
	t.Helper()
	s := rabbitmq.get(t)
	return createVhost(t, s.URL, s.API)
}

// The servers that all tests of one process share, started on first use.
var (
	postgres = shared{kind: server.Postgres}
	rabbitmq = shared{kind: server.RabbitMQ}
)

type shared struct {
	kind server.Kind
	once sync.Once
	s    *server.Server
	err  error
}

func (h *shared) get(t testing.TB) *server.Server {
	t.Helper()
	h.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		h.s, h.err = server.Open(ctx, h.kind)
	})
	if h.err != nil {
		t.Fatal(h.err)
	}
	t.Logf("%s: %s", h.kind, h.s.From)
	return h.s
}

func (h *shared) close() error {
	if h.s == nil {
		return nil
	}
	return h.s.Close()
}

func closeServer(t testing.TB, s *server.Server) {
	if err := s.Close(); err != nil {
		t.Errorf("remove the server of the test: %v", err)
	}
}

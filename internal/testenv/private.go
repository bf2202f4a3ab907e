package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

// stopTimeout bounds an orderly stop.
const stopTimeout = time.Minute

// Server is a server of one test alone, to be killed and started again. Its
// methods wait until it is down or answers, and fail the test when they cannot.
// They may be called from the test's own goroutine only.
type Server struct {
	// URL stays valid over Kill, Stop and Start.
	URL string
	// API is RabbitMQ's management API with credentials, else empty.
	API string

	t testing.TB
	s *server.Server
}

// StartRedis starts a Redis with appendonly and appendfsync always, so that a
// confirmed write survives Kill.
func StartRedis(t testing.TB) *Server { t.Helper(); return private(t, server.Redis) }

// StartPostgres starts a Postgres; URL names its database postgres.
func StartPostgres(t testing.TB) *Server { t.Helper(); return private(t, server.Postgres) }

// StartRabbitMQ starts a RabbitMQ node with the management API; URL names its
// vhost "/".
func StartRabbitMQ(t testing.TB) *Server { t.Helper(); return private(t, server.RabbitMQ) }

func private(t testing.TB, kind server.Kind) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	s, err := server.Private(ctx, kind)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeServer(t, s) })
	return &Server{URL: s.URL, API: s.API, t: t, s: s}
}

// Kill ends the server with SIGKILL: nothing is flushed, no client is told.
func (s *Server) Kill() { s.t.Helper(); s.do(stopTimeout, s.s.Kill) }

// Stop ends the server in its orderly way: SIGTERM, for Postgres its fast
// shutdown.
func (s *Server) Stop() { s.t.Helper(); s.do(stopTimeout, s.s.Stop) }

// Start starts the server again on the same port and data, and returns once it
// answers.
func (s *Server) Start() { s.t.Helper(); s.do(startTimeout, s.s.Start) }

// Control runs rabbitmqctl with arguments, on a server of StartRabbitMQ.
func (s *Server) Control(args ...string) {
	s.t.Helper()
	s.do(stopTimeout, func(ctx context.Context) error { return s.s.Control(ctx, args...) })
}

func (s *Server) do(limit time.Duration, f func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := f(ctx); err != nil {
		s.t.Fatal(err)
	}
}

package server

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// Kind is one of the three servers.
type Kind string

// The servers that tests need.
const (
	Redis    Kind = "redis"
	Postgres Kind = "postgres"
	RabbitMQ Kind = "rabbitmq"
)

// AptLine installs everything that `make test` needs on Debian and Ubuntu; gcc
// and libc6-dev are for -race.
const AptLine = "apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends " +
	"rabbitmq-server redis-server postgresql gcc libc6-dev"

// errNotHere says that a source has nothing to offer on this machine, so that
// the next one is asked; every other error ends the search.
var errNotHere = errors.New("not available here")

// Server is one running server.
type Server struct {
	// URL is what a client connects to; it stays the same over Kill and Start.
	URL string
	// API is the base URL of RabbitMQ's management API, with credentials;
	// empty for the other kinds.
	API string
	// From says in words which source the server came from.
	From string
	// Passed says why earlier sources were passed over; nil when the first had it.
	Passed error
	// Shared is true for a server from the environment: others may use it too,
	// and it can be neither stopped nor killed from here.
	Shared bool

	backend backend
}

// backend is the part of a server that depends on how it runs.
type backend interface {
	start(ctx context.Context) error // start (again) and wait until it answers
	kill(ctx context.Context) error  // SIGKILL, and wait for the end
	stop(ctx context.Context) error  // orderly stop, and wait for the end
	remove() error                   // end it and remove all that is left of it
	// control runs the kind's control program.
	control(ctx context.Context, args []string) error
}

// Open returns a server of the kind from the first source that has one.
func Open(ctx context.Context, kind Kind) (*Server, error) {
	if url := os.Getenv(urlVariable[kind]); url != "" {
		return fromEnvironment(kind, url)
	}
	return firstOf(ctx, kind, openContainer, openProcess)
}

// Private returns a server that belongs to the caller alone. The local process
// comes first here: it is killed and started again without the engine's help.
func Private(ctx context.Context, kind Kind) (*Server, error) {
	return firstOf(ctx, kind, openProcess, openContainer)
}

func firstOf(ctx context.Context, kind Kind, sources ...func(context.Context, Kind) (*Server, error)) (*Server, error) {
	var reasons []error
	for _, open := range sources {
		s, err := open(ctx, kind)
		if err == nil {
			s.Passed = errors.Join(reasons...)
			return s, nil
		}
		if !errors.Is(err, errNotHere) {
			return nil, err
		}
		reasons = append(reasons, err)
	}
	return nil, fmt.Errorf("no %s to test against: set %s, or as root: %s\n%w",
		kind, urlVariable[kind], AptLine, errors.Join(reasons...))
}

// Start starts a stopped or killed server on the same port and data and waits
// until it answers.
func (s *Server) Start(ctx context.Context) error { return s.call(ctx, "start", backend.start) }

// Kill ends the server with SIGKILL.
func (s *Server) Kill(ctx context.Context) error { return s.call(ctx, "kill", backend.kill) }

// Stop ends the server in its orderly way, within the context.
func (s *Server) Stop(ctx context.Context) error { return s.call(ctx, "stop", backend.stop) }

func (s *Server) call(ctx context.Context, what string, f func(backend, context.Context) error) error {
	if s.Shared {
		return fmt.Errorf("cannot %s the server of the environment", what)
	}
	if err := f(s.backend, ctx); err != nil {
		return fmt.Errorf("%s %s: %w", what, s.From, err)
	}
	return nil
}

// Close ends the server and removes its data. A server of the environment is
// left alone.
func (s *Server) Close() error {
	if s.Shared {
		return nil
	}
	return s.backend.remove()
}

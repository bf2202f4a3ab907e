package rabbit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Pauses between tries to connect, before jitter.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = 5 * time.Second
	// steady is how long a connection must stand to count as a good one.
	steady = 5 * time.Second
)

// link keeps one connection up.
type link struct {
	cfg  Config
	role string // what the connection is for, in names and logs
	turn *sync.Mutex
	// serve is run on every connection that stands; it returns soon after the
	// session has ended or ctx is done.
	serve func(ctx context.Context, s *session)

	mu      sync.Mutex
	current *session
	changed chan struct{} // closed when current changes
	closed  bool
	saidErr string // what was logged and reported last
}

func newLink(cfg Config, role string, turn *sync.Mutex, serve func(context.Context, *session)) *link {
	cfg.Name += " " + role
	return &link{cfg: cfg, role: role, turn: turn, serve: serve, changed: make(chan struct{})}
}

// run connects again and again until ctx is done.
func (l *link) run(ctx context.Context) {
	defer l.set(nil, true)
	for try, failed := 0, 0; ctx.Err() == nil; try++ {
		urls := l.cfg.urls()
		url := urls[try%len(urls)]
		began := time.Now()
		err := l.once(ctx, url)
		if ctx.Err() != nil {
			return
		}
		l.down(err)
		if time.Since(began) > steady {
			failed = 0
		}
		// All URLs are tried before the pause grows.
		pause(ctx, backoff(failed/len(urls)))
		failed++
	}
}

// once is the life of one connection; the error says why it ended.
func (l *link) once(ctx context.Context, url string) error {
	s, err := dial(ctx, l.cfg, url)
	if err != nil {
		return err
	}
	// A broker that has blocked us would hold a writer for the write timeout.
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(closeTimeout, s.kill) })
	defer stop()
	if err := ensureTopology(s, l.cfg, l.turn); err != nil {
		_ = s.close()
		return err
	}
	l.set(s, false)
	l.up(s)
	l.serve(ctx, s)
	l.set(nil, false)
	if err := s.close(); err != nil && s.err == nil {
		return fmt.Errorf("connection to %s: %w", s.where, err)
	}
	if s.err == nil {
		return fmt.Errorf("connection to %s ended", s.where)
	}
	return fmt.Errorf("connection to %s lost: %w", s.where, s.err)
}

// session waits for a connection.
func (l *link) session(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		s, changed, closed := l.current, l.changed, l.closed
		l.mu.Unlock()
		switch {
		case closed:
			return nil, ErrClosed
		case s != nil:
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("not connected to the broker: %w", ctx.Err())
		}
	}
}

func (l *link) connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.current != nil
}

func (l *link) set(s *session, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.closed = s, closed
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *link) up(s *session) {
	l.mu.Lock()
	l.saidErr = ""
	l.mu.Unlock()
	l.cfg.Logger.Info("connected to RabbitMQ", "for", l.role, "broker", s.where, "version", s.version)
	l.cfg.OnState(true, nil)
}

// down reports a failure once, not once a try: again only when the kind of
// failure is another.
func (l *link) down(err error) {
	kind := "connection"
	if errors.Is(err, ErrTopology) {
		kind = err.Error()
	}
	l.mu.Lock()
	said := l.saidErr == kind
	l.saidErr = kind
	l.mu.Unlock()
	level := slog.LevelWarn
	if said {
		level = slog.LevelDebug
	}
	l.cfg.Logger.Log(context.Background(), level, "no connection to RabbitMQ; will keep trying", "for", l.role, "err", err)
	if !said {
		l.cfg.OnState(false, err)
	}
}

// backoff doubles with every failure and is drawn from its upper half.
func backoff(failed int) time.Duration {
	d := min(firstPause<<min(failed, 16), maxPause)
	return d/2 + rand.N(d/2)
}

// pause sleeps unless ctx ends first.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

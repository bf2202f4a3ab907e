package admin

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/wire"
)

// Records are the events that the consumers' inbox knows.
type Records interface {
	Events(ctx context.Context, f inbox.Filter, after inbox.Cursor, n int) ([]inbox.Record, inbox.Cursor, error)
	Event(ctx context.Context, key hookonce.Key) ([]inbox.Record, error)
}

// Letters are its dead letters, to read.
type Letters interface {
	Letters(ctx context.Context, f inbox.Filter, after inbox.Cursor, n int) ([]inbox.Letter, inbox.Cursor, error)
	Letter(ctx context.Context, group string, key hookonce.Key) (inbox.Letter, error)
	DeadGroups(ctx context.Context, f inbox.Filter) ([]inbox.DeadGroup, error)
}

// Changes move events out of the dead letters.
type Changes interface {
	MarkReplayed(ctx context.Context, replays ...inbox.Replay) ([]bool, error)
	Discard(ctx context.Context, reason string, targets ...inbox.Target) ([]bool, error)
}

// Decisions are a person's about dead letters that no rule can decide about.
type Decisions interface {
	Resolve(ctx context.Context, group string, key hookonce.Key, generation int, done bool, reason string) ([]string, error)
	Force(ctx context.Context, group string, key hookonce.Key, generation int, steps []string, reason string) (int, error)
}

// Pauses stop groups and let them go on.
type Pauses interface {
	Pause(ctx context.Context, group, reason string) (bool, error)
	Resume(ctx context.Context, group string) (bool, error)
	Paused(ctx context.Context) (map[string]inbox.Pause, error)
}

// Inbox is all of them, as *inbox.Inbox is.
type Inbox interface {
	Records
	Letters
	Changes
	Decisions
	Pauses
}

// Sender puts an event into a group's queue, or with an empty group before all
// groups that match it, durably; a queue.Queue is one.
type Sender interface {
	Send(ctx context.Context, group string, d wire.Delivery) error
}

// Options set up a Service.
type Options struct {
	// Inbox is needed.
	Inbox Inbox
	// Queue is where replays go; nil answers them with 503.
	Queue Sender
	// Groups are the names of the groups that may be paused; nil means any.
	Groups []string
	// Health is asked by /readyz; nil means always ready.
	Health func(ctx context.Context) []Check
	// Metrics answers /metrics; nil means 404.
	Metrics http.Handler
	// Token is what callers must show; empty means loopback names only.
	Token string
	// Now is the time source; nil means time.Now.
	Now func() time.Time
	// Logger takes one line a change; nil means slog.Default().
	Logger *slog.Logger
}

// Service is the API over an inbox and a queue.
type Service struct {
	o Options
}

// New makes a Service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Service{o: o}
}

// Handler serves everything under the rules of the package: token, Host and
// origin.
func (s *Service) Handler() http.Handler {
	probes := Probes(s.o.Health, s.o.Metrics)
	api := http.NewServeMux()
	api.HandleFunc("GET /api/v1/events", s.listEvents)
	api.HandleFunc("GET /api/v1/events/{key...}", s.showEvent)
	api.HandleFunc("GET /api/v1/dead", s.listDead)
	api.HandleFunc("GET /api/v1/dead/groups", s.listDeadGroups)
	api.HandleFunc("POST /api/v1/dead/replay", s.replay)
	api.HandleFunc("POST /api/v1/dead/discard", s.discard)
	api.HandleFunc("GET /api/v1/groups", s.listGroups)
	api.HandleFunc("POST /api/v1/groups/{group}/pause", s.pause)
	api.HandleFunc("POST /api/v1/groups/{group}/resume", s.resume)

	mux := http.NewServeMux()
	for _, path := range probePaths {
		mux.Handle(path, probes)
	}
	mux.Handle("/", requireToken(s.o.Token, plainErrors(api)))
	var h http.Handler = mux
	if s.o.Token == "" {
		h = requireLoopbackName(h)
	}
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusForbidden, "a change from another origin was refused")
	}))
	return origin.Handler(h)
}

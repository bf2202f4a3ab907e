package receiver

import (
	"context"
	"log/slog"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/telemetry"
)

// Store claims keys. Errors: [hookonce.ErrInvalid] for an event that can never
// be stored, [hookonce.ErrOutboxFull], and anything else for "state unknown".
// The store does not retry.
type Store interface {
	ClaimOne(ctx context.Context, claim hookonce.Claim) (hookonce.Claimed, error)
}

// Offerer takes the outbox entries of new events, to publish them straight
// away. Offer does not block; what it drops is found in the outbox later.
type Offerer interface {
	Offer(entry hookonce.Entry)
}

// Publisher publishes an event past the outbox and returns once the broker
// has confirmed it.
type Publisher interface {
	Publish(ctx context.Context, event hookonce.Event) error
}

// Confirmer publishes an outbox entry, waits for the broker's confirm and
// settles the entry.
type Confirmer interface {
	Confirm(ctx context.Context, entry hookonce.Entry) error
}

// Config is what a [Receiver] is made of. Only Store is needed.
type Config struct {
	// Sources are the endpoints; names and paths are unique.
	Sources []Source
	Store   Store
	// Relay publishes new events; nil when the store itself delivers them to
	// the consumers (embedded queue).
	Relay Offerer
	// Publisher serves sources with OnStoreDown "publish" while the store is
	// down; nil answers 503 instead.
	Publisher Publisher
	// Confirmer serves sources with Ack "confirm", which need a Publisher too;
	// with a Relay and such a source it must not be nil.
	Confirmer Confirmer

	// MaxBody is the largest body in bytes, before and after decoding; 1 MiB by default.
	MaxBody int64
	// MaxInWork is how many requests are worked on at once; further ones are
	// answered 503 before their body is read. 4096 by default.
	MaxInWork int
	// PublicURL is the address in front of the request target as senders see
	// it, for providers that sign the URL; scheme and Host as received by default.
	PublicURL string
	// TrustedProxies are the addresses and networks whose forwarded headers
	// tell the sender's address in the log; none by default.
	TrustedProxies []string

	Logger  *slog.Logger       // slog.Default() by default
	Metrics *telemetry.Metrics // unregistered ones by default
	Now     func() time.Time   // time.Now by default
}

const (
	defaultMaxBody   = 1 << 20
	defaultMaxInWork = 4096

	// claimTimeout bounds the claim, both tries together; publishTimeout a
	// publish that an answer waits for. They run when the sender is gone too.
	claimTimeout   = 5 * time.Second
	publishTimeout = 5 * time.Second
)

func (c *Config) setDefaults() {
	if c.MaxBody <= 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.MaxInWork <= 0 {
		c.MaxInWork = defaultMaxInWork
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = telemetry.NewMetrics(nil)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
}

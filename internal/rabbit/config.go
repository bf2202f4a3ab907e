package rabbit

import (
	"log/slog"
	"time"

	"github.com/hookonce/hookonce/internal/telemetry"
)

// Mode says what is done about exchanges, queues and bindings on connecting.
type Mode string

// The modes. The zero Mode is Declare.
const (
	// Declare creates what is missing and refuses what is there with other arguments.
	Declare Mode = "declare"
	// Verify creates nothing and refuses to start without a queue or exchange.
	Verify Mode = "verify"
	// Assume does not look.
	Assume Mode = "assume"
)

// GroupTopology is one consumer group.
type GroupTopology struct {
	// Name of the group; its queues' names are made of it.
	Name string
	// Bindings are the topic patterns of the events it wants.
	Bindings []string
}

// TLS says whom to trust and who we are. Without it the system's authorities
// are trusted.
type TLS struct {
	// CA is a file of PEM certificates: the authorities that may vouch for the
	// broker, in place of the system's.
	CA string
	// Cert and Key are PEM files of our own certificate; both or none.
	Cert, Key string
}

// Config is how to reach the broker and what must be there.
type Config struct {
	// URLs are amqp:// or amqps:// URLs of the same cluster, tried in turn.
	// Reserved characters in user and password are percent-encoded. Default:
	// guest on this machine.
	URLs []string
	// Refresh gives the URLs anew before each try to connect, for credentials
	// that change; nil, or an empty answer, keeps URLs.
	Refresh func() []string
	// TLS is for amqps:// URLs. The files are read at each connection, so that
	// renewed certificates are used from the next one on.
	TLS TLS
	// Name is the connection's name in the broker's listings; "hookonce".
	Name string
	// Heartbeat is how often both sides show that they live; 10s. A dead peer is
	// noticed after three of them. A heartbeat parameter in a URL wins.
	Heartbeat time.Duration
	// Topology is what to do about exchanges and queues; Declare.
	Topology Mode
	// Groups are declared, bound or verified; all that the configuration names.
	Groups []GroupTopology
	// ConfirmTimeout is how long a message may go without a confirm; 30s.
	ConfirmTimeout time.Duration
	// WriteTimeout bounds one write to the socket, so that a broker that reads
	// no more cannot hold anybody for ever; 10s.
	WriteTimeout time.Duration
	// Channels is how many channels publish side by side; 2.
	Channels int
	// Window is how many messages a channel has in flight at most; 1000. More
	// gains nothing: the client library slows down and the broker does not speed up.
	Window int
	// Logger; slog.Default().
	Logger *slog.Logger
	// Metrics gets BrokerUp from the publishing connection; none when nil.
	Metrics *telemetry.Metrics
	// OnState is told when the connection comes up and when it goes down or stays
	// down for another reason than before; err says why. It must not block.
	OnState func(up bool, err error)
}

func (c Config) withDefaults() Config {
	if len(c.URLs) == 0 {
		c.URLs = []string{"amqp://guest:guest@127.0.0.1:5672/"}
	}
	setDefault(&c.Name, "hookonce")
	setDefault(&c.Heartbeat, 10*time.Second)
	setDefault(&c.Topology, Declare)
	setDefault(&c.ConfirmTimeout, 30*time.Second)
	setDefault(&c.WriteTimeout, 10*time.Second)
	setDefault(&c.Channels, 2)
	setDefault(&c.Window, 1000)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.OnState == nil {
		c.OnState = func(bool, error) {}
	}
	return c
}

// urls are those to connect to now.
func (c Config) urls() []string {
	if c.Refresh != nil {
		if urls := c.Refresh(); len(urls) > 0 {
			return urls
		}
	}
	return c.URLs
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

package rabbit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// dialTimeout bounds connecting, TLS and the AMQP handshake together.
const dialTimeout = 15 * time.Second

// dial makes one connection. Each dial has a Config of its own: the library
// writes into it, and wipes the password once it is connected.
func dial(ctx context.Context, cfg Config, rawURL string) (*session, error) {
	if _, err := amqp.ParseURI(rawURL); err != nil {
		// The parser's own message would show the password.
		return nil, errors.New("broker URL cannot be read: it must be amqp:// or amqps://, reserved characters in user and password percent-encoded")
	}
	secured, err := cfg.TLS.config()
	if err != nil {
		return nil, err
	}
	s := &session{where: redacted(rawURL), done: make(chan struct{}), flow: newGate()}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	release := func() bool { return true } // from then on the end of ctx is no matter
	properties := amqp.NewConnectionProperties()
	properties.SetClientConnectionName(cfg.Name)
	conn, err := amqp.DialConfig(rawURL, amqp.Config{
		Heartbeat:       cfg.Heartbeat,
		TLSClientConfig: secured,
		Properties:      properties,
		Dial: func(network, addr string) (net.Conn, error) {
			raw, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			s.raw, s.out = raw, newGatherConn(&deadlineConn{Conn: raw, timeout: cfg.WriteTimeout})
			release = context.AfterFunc(ctx, s.kill)
			// The library clears this deadline once the handshake is through.
			return s.out, s.out.SetDeadline(time.Now().Add(dialTimeout))
		},
	})
	release()
	if err != nil {
		s.kill()
		return nil, fmt.Errorf("connect to %s: %w", s.where, err)
	}
	s.conn = conn
	s.version, _ = conn.Properties["version"].(string)
	s.watch()
	return s, nil
}

// Reach tells whether one of the URLs leads to a broker that lets us in.
func Reach(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	var errs []error
	for _, u := range cfg.URLs {
		s, err := dial(ctx, cfg, u)
		if err == nil {
			return s.close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// redacted is a URL without user, password and parameters, for errors and logs.
func redacted(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "the broker"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// deadlineConn bounds every write. The library has no bound of its own: while
// the broker does not read, a publish, and everything behind it, would hang.
type deadlineConn struct {
	net.Conn
	timeout time.Duration
	bound   atomic.Pointer[time.Time] // a deadline set from outside
}

func (c *deadlineConn) Write(b []byte) (int, error) {
	deadline := time.Now().Add(c.timeout)
	if bound := c.bound.Load(); bound != nil && bound.Before(deadline) {
		deadline = *bound
	}
	if err := c.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *deadlineConn) SetDeadline(t time.Time) error {
	c.bound.Store(nil)
	if !t.IsZero() {
		c.bound.Store(&t)
	}
	return c.Conn.SetDeadline(t)
}

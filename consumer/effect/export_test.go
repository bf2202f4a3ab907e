package effect

import (
	"net"
	"time"
)

// SetBreaker exchanges a forwarder's circuit breaker.
func (f *Forwarder) SetBreaker(failures uint32, pause time.Duration) {
	f.breaker = newBreakerOf(failures, pause)
}

// RetryAfterOf is how a Retry-After header is read.
func RetryAfterOf(value string, now time.Time) time.Duration { return retryAfter(value, now) }

// Refused is why a target's address is refused.
var Refused = refused

// HeaderKey is a downstream key in a header.
var HeaderKey = headerKey

// RenderText renders a text template on an event's body.
func RenderText(text, body string) (string, error) { return renderBody(parseText, text, body) }

// RenderHTML renders an HTML template on an event's body.
func RenderHTML(text, body string) (string, error) { return renderBody(parseHTML, text, body) }

// PretendFarAway makes a server look like one that is not on this machine.
func (m *Mailer) PretendFarAway() { m.server.near = func(net.Conn) bool { return false } }

package rabbit

import (
	"net"
	"time"
)

// SetBlocked does what the broker's connection.blocked does.
func SetBlocked(p *Publisher, blocked bool) {
	p.link.mu.Lock()
	defer p.link.mu.Unlock()
	p.link.current.flow.set(blocked)
}

// DeadlineConn wraps a connection as dial does.
func DeadlineConn(c net.Conn, timeout time.Duration) net.Conn {
	return &deadlineConn{Conn: c, timeout: timeout}
}

// GatherConn wraps a connection as dial does.
func GatherConn(c net.Conn) net.Conn { return newGatherConn(c) }

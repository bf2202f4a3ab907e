package rabbit

import (
	"net"
	"sync"
	"time"
)

const (
	// gatherBytes is how much may wait to be written; then writers wait.
	gatherBytes = 256 << 10
	// flushTimeout bounds what is still written on closing.
	flushTimeout = time.Second
)

// gatherConn writes in a goroutine of its own: what comes while one write is
// under way goes out together with the next. The client library flushes after
// every message; under load this makes one system call, and on the broker's
// side one packet, of many messages, and idle it delays nothing.
//
// An error shows at the next Write, and the connection is closed at once, which
// the library's reader notices. Nothing depends on more: a message counts as
// sent when the broker confirms it.
type gatherConn struct {
	net.Conn

	mu      sync.Mutex
	room    sync.Cond // when waiting was taken, and at the end
	waiting []byte
	err     error
	closing bool

	wake  chan struct{}
	ended chan struct{} // closed when the goroutine is gone
}

func newGatherConn(c net.Conn) *gatherConn {
	g := &gatherConn{Conn: c, wake: make(chan struct{}, 1), ended: make(chan struct{})}
	g.room.L = &g.mu
	go g.writeOut()
	return g
}

// Write takes all of b, to be written soon.
func (g *gatherConn) Write(b []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for len(g.waiting) >= gatherBytes && g.err == nil && !g.closing {
		g.room.Wait()
	}
	switch {
	case g.err != nil:
		return 0, g.err
	case g.closing:
		return 0, net.ErrClosed
	}
	g.waiting = append(g.waiting, b...)
	g.ring()
	return len(b), nil
}

// Close writes what waits, for a short while, and closes the connection.
func (g *gatherConn) Close() error {
	g.mu.Lock()
	if !g.closing {
		g.closing = true
		_ = g.SetDeadline(time.Now().Add(flushTimeout)) // a write under way has it too
	}
	g.ring()
	g.room.Broadcast()
	g.mu.Unlock()
	<-g.ended
	return g.Conn.Close()
}

func (g *gatherConn) ring() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// writeOut writes until the connection is closed or fails.
func (g *gatherConn) writeOut() {
	defer close(g.ended)
	var out []byte
	for range g.wake {
		g.mu.Lock()
		out, g.waiting = g.waiting, out[:0]
		closing := g.closing
		g.room.Broadcast()
		g.mu.Unlock()
		if len(out) > 0 {
			if _, err := g.Conn.Write(out); err != nil {
				g.fail(err)
				return
			}
		}
		if closing {
			return // nothing is added once closing is set
		}
		if cap(out) > 4*gatherBytes {
			out = nil // a large event is not paid for ever after
		}
	}
}

func (g *gatherConn) fail(err error) {
	g.mu.Lock()
	g.err, g.waiting = err, nil
	g.room.Broadcast()
	g.mu.Unlock()
	_ = g.Conn.Close()
}

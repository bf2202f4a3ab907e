package storetest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Proxy stands between a store and its server, on the loopback interface. While
// Lose is on, requests reach the server, and each answer ends its connection
// unseen.
type Proxy struct {
	// Addr is where the store connects to.
	Addr string

	lose   atomic.Bool
	server string
	wg     sync.WaitGroup
	mu     sync.Mutex
	open   map[net.Conn]bool
}

// NewProxy starts a proxy to a server's host:port; it ends with the test.
func NewProxy(t *testing.T, server string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), server: server, open: map[net.Conn]bool{}}
	p.wg.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			p.serve(down)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.mu.Lock()
		for c := range p.open {
			_ = c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

// Lose turns the loss of answers on and off.
func (p *Proxy) Lose(on bool) { p.lose.Store(on) }

func (p *Proxy) serve(down net.Conn) {
	up, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = down.Close()
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range []net.Conn{up, down} {
		p.open[c] = true
	}
	p.wg.Go(func() {
		_, _ = io.Copy(up, down)
		p.drop(up)
	})
	p.wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := up.Read(buf)
			if err != nil || p.lose.Load() {
				break
			}
			if _, err := down.Write(buf[:n]); err != nil {
				break
			}
		}
		p.drop(down)
	})
}

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

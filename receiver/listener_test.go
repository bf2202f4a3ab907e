package receiver_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/receiver"
)

// pipes is a listener whose connections are in memory, so that the server's
// time limits pass at once in a synctest bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// listening serves a bench on in-memory connections within a bubble.
func listening(t *testing.T, b *bench) *pipes {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := receiver.NewHTTPServer("", b.handler, nil)
	done := make(chan error)
	go func() { done <- server.Serve(p) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return p
}

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- server
	return client
}

// ends reads a connection to its end, and says what came and how long it took.
func ends(c net.Conn) (string, time.Duration) {
	began := time.Now()
	all, _ := io.ReadAll(c) // an error is an end too
	return string(all), time.Since(began)
}

// TestSlowSenders: whoever sends a byte now and then loses the connection, and
// holds no place among the requests in work longer than that.
func TestSlowSenders(t *testing.T) {
	head := "POST /hooks/demo HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n{"
	for _, c := range []struct {
		name, first, drip string
		within            time.Duration
	}{
		{"headers", "POST /hooks/demo HTTP/1.1\r\nHost: h\r\n", "X-A: b\r\n", 5 * time.Second},
		{"body", head, " ", 15 * time.Second},
		{"chunked body", strings.Replace(head, "Content-Length: 1000\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", 1), "1\r\n \r\n", 15 * time.Second},
		{"nothing at all", "", "", 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBenchWith(t, func(cfg *receiver.Config) { cfg.MaxInWork = 1 }, demoSource)
				p := listening(t, b)
				conn := p.dial()
				var dripping sync.WaitGroup
				dripping.Go(func() {
					for text := c.first; ; text = c.drip {
						if _, err := conn.Write([]byte(text)); err != nil {
							return
						}
						<-time.After(time.Second)
					}
				})
				answer, took := ends(conn)
				_ = conn.Close()
				dripping.Wait()
				if took > c.within+time.Second || strings.Contains(answer, "HTTP/1.1 200") {
					t.Errorf("ended after %v with %q; want within %v", took, answer, c.within)
				}
				if b.store.calls() != 0 {
					t.Error("half a request was claimed")
				}
				next := p.dial()
				defer next.Close()
				go func() { _, _ = io.WriteString(next, request("POST /hooks/demo", order, "Connection: close")) }()
				if answer, _ := ends(next); !strings.HasPrefix(answer, "HTTP/1.1 200") {
					t.Errorf("the next sender: %q", answer)
				}
			})
		})
	}
}

// request is one on the wire.
func request(line, body string, headers ...string) string {
	return line + " HTTP/1.1\r\nHost: h\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n" +
		strings.Join(append(headers, ""), "\r\n") + "\r\n" + body
}

// TestIdleConnections: kept for two minutes, not for ever.
func TestIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := listening(t, newBench(t, demoSource))
		conn := p.dial()
		defer conn.Close()
		go func() { _, _ = io.WriteString(conn, request("POST /hooks/demo", order)) }()
		r := bufio.NewReader(conn)
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%v, %v", resp, err)
		}
		began := time.Now()
		_, err := r.ReadByte()
		if idle := time.Since(began); err == nil || idle < time.Minute || idle > 3*time.Minute {
			t.Errorf("closed after %v, %v", idle, err)
		}
	})
}

// TestOnTheWire: what senders may do with HTTP, on a real listener.
func TestOnTheWire(t *testing.T) {
	twice := request("POST /hooks/demo", order)
	large := `{"order_id":"` + strings.Repeat("x", 2<<20) + `"}`
	chunks := func(body string) string {
		var b strings.Builder
		b.WriteString("POST /hooks/demo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")
		for len(body) > 0 {
			n := min(len(body), 1000)
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, body[:n])
			body = body[n:]
		}
		return b.String() + "0\r\n\r\n"
	}
	for _, c := range []struct {
		name, send string
		statuses   []int
		claims     int
	}{
		{"pipelined", twice + twice + request("GET /hooks/demo", ""), []int{200, 200, 405}, 2},
		{"chunked", chunks(order) + twice, []int{200, 200}, 2},
		{"chunked and too large", chunks(large), []int{413}, 0},
		{"too large", request("POST /hooks/demo", large), []int{413}, 0},
		{"headers of a megabyte", request("POST /hooks/demo", order, "X-A: "+strings.Repeat("a", 1<<20)), []int{431}, 0},
		{"many headers", request("POST /hooks/demo", order, strings.Repeat("X-A: b\r\n", 20000)+"X-B: c"), []int{431}, 0},
		{"length and chunks", "POST /hooks/demo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n", []int{501}, 0},
		{"two lengths", "POST /hooks/demo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef", []int{400}, 0},
		{"no HTTP", "\x16\x03\x01\x02\x00\r\n\r\n", []int{400}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, demoSource)
			conn := dialBench(t, b)
			go func() { _, _ = io.WriteString(conn, c.send) }() // ends early when the server does
			r := bufio.NewReader(conn)
			for i, want := range c.statuses {
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Fatalf("answer %d: %v", i+1, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body) // to the next answer
				if resp.StatusCode != want {
					t.Fatalf("answer %d: status %d, want %d", i+1, resp.StatusCode, want)
				}
			}
			if n := b.store.calls(); n != c.claims {
				t.Errorf("%d claims, want %d", n, c.claims)
			}
		})
	}
}

// dialBench serves a bench on a real listener and connects to it.
func dialBench(t *testing.T, b *bench) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := receiver.NewHTTPServer("", b.handler, nil)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = server.Close()
		<-done
	})
	return conn
}

// TestExpectContinue: a sender that asks first is told to go on, or hears at
// once that its body is too large, before it has sent it.
func TestExpectContinue(t *testing.T) {
	for _, c := range []struct {
		length int
		first  int
	}{{len(order), 100}, {2 << 20, 413}} {
		conn := dialBench(t, newBench(t, demoSource))
		fmt.Fprintf(conn, "POST /hooks/demo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", c.length)
		r := bufio.NewReader(conn)
		line, err := r.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, fmt.Sprintf("HTTP/1.1 %d ", c.first)) {
			t.Errorf("length %d: %q, %v", c.length, line, err)
		}
		if c.first != 100 {
			continue
		}
		if _, err := r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, order)
		if resp, err := http.ReadResponse(r, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("%v, %v", resp, err)
		}
	}
}

// TestHangUp: a sender that is gone once it has sent everything loses nothing:
// its event is claimed and offered.
func TestHangUp(t *testing.T) {
	b := newBench(t, demoSource)
	conn := dialBench(t, b)
	if _, err := io.WriteString(conn, request("POST /hooks/demo", order)); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); b.offers() != 1; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d claims, %d offers", b.store.calls(), b.offers())
		}
	}
}

func (b *bench) offers() int {
	b.broker.mu.Lock()
	defer b.broker.mu.Unlock()
	return len(b.broker.offered)
}

// TestBombsInFlatMemory: what grows to 50 MiB is refused having grown to little
// more than the limit.
func TestBombsInFlatMemory(t *testing.T) {
	packed := bomb(t, 50<<20)
	b := newBench(t, demoSource)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const times = 8
	for range times {
		wantStatus(t, b.post("/hooks/demo", packed, "Content-Encoding", "gzip"), 413)
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / times; each > 6<<20 {
		t.Errorf("%d bytes allocated for each bomb of %d, limit 1 MiB", each, len(packed))
	}
	if b.store.calls() != 0 {
		t.Error("a bomb was claimed")
	}
}

// TestPeer: the log names the sender as a trusted proxy tells it, and the proxy
// itself when nobody trusts it.
func TestPeer(t *testing.T) {
	for proxies, want := range map[string]string{
		"":               "peer=192.0.2.1",
		"192.0.2.0/24":   "peer=203.0.113.9",
		"198.51.100.0/8": "peer=192.0.2.1",
	} {
		b := newBenchWith(t, func(c *receiver.Config) {
			if proxies != "" {
				c.TrustedProxies = []string{proxies}
			}
		}, demoSource)
		b.post("/hooks/demo", `{}`, "X-Forwarded-For", "10.9.8.7, 203.0.113.9")
		if !strings.Contains(b.logs.String(), want) {
			t.Errorf("trusted %q: %s", proxies, bytes.TrimSpace([]byte(b.logs.String())))
		}
	}
}

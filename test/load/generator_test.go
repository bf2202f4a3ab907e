package load_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	sourceName = "bench"
	sourcePath = "/hooks/" + sourceName
	secret     = "a secret of the load generator"
	keyLength  = 24
	// knownKeys are the keys a connection repeats in the rows of duplicates.
	knownKeys = 16
)

// body is what every request carries: 1.2 KB of JSON.
var body = []byte(`{"id":"evt_00000000","type":"order.paid","created":1700000000,"data":{"order_id":"A-1001","email":"jo@example.com","total":"19.90","lines":[` +
	strings.Repeat(`{"sku":"HK-2001","name":"A thing that is sold","quantity":2,"price":"9.95"},`, 14) + `{"sku":"end"}]}}`)

// result is what a run of the generator saw.
type result struct {
	requests  int
	replayed  int // answers that say they are a duplicate's
	elapsed   time.Duration
	latencies []time.Duration // sorted
}

func (r result) rate() float64 { return float64(r.requests) / r.elapsed.Seconds() }

func (r result) quantile(q float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(int(q*float64(len(r.latencies))), len(r.latencies)-1)]
}

// generator sends requests to one server over connections that it keeps.
type generator struct {
	senders []*sender
}

// sender is one connection.
type sender struct {
	conn      net.Conn
	request   []byte
	key       []byte // where the key stands in request
	n         uint64
	repeat    uint64 // keys before they repeat; 0: never
	answer    []byte
	latencies []time.Duration
	replayed  int
}

func dialGenerator(ctx context.Context, addr string, conns int, duplicates bool) (*generator, error) {
	g := &generator{}
	run := rand.Uint32()
	for i := range conns {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			g.close()
			return nil, fmt.Errorf("connect to the server that is measured: %w", err)
		}
		s := &sender{conn: conn, answer: make([]byte, 0, 4096)}
		if duplicates {
			s.repeat = knownKeys
		}
		s.request, s.key = newRequest(run, i)
		g.senders = append(g.senders, s)
	}
	return g, nil
}

func (g *generator) close() {
	for _, s := range g.senders {
		_ = s.conn.Close()
	}
}

// newRequest is a request and the part of it that holds the key.
func newRequest(run uint32, conn int) (request, key []byte) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: hooks.example.com\r\nUser-Agent: Example/1.0 (+https://example.com/webhooks)\r\n"+
		"Accept: */*\r\nContent-Type: application/json\r\nX-Signature: %x\r\nContent-Length: %d\r\nIdempotency-Key: ", sourcePath, mac.Sum(nil), len(body))
	request = append([]byte(head), fmt.Sprintf("%08x%04x%012x", run, conn, 0)...)
	request = append(append(request, "\r\n\r\n"...), body...)
	return request, request[len(head) : len(head)+keyLength]
}

// run sends for so long: as fast as answers come, or at a rate (requests a
// second, all connections together).
func (g *generator) run(length time.Duration, rate float64) (result, error) {
	start := time.Now()
	errs := make([]error, len(g.senders))
	var wg sync.WaitGroup
	for i, s := range g.senders {
		s.latencies, s.replayed = s.latencies[:0], 0
		wg.Go(func() {
			if rate == 0 {
				errs[i] = s.full(start.Add(length))
				return
			}
			every := time.Duration(float64(len(g.senders)) / rate * float64(time.Second))
			errs[i] = s.paced(start.Add(every*time.Duration(i)/time.Duration(len(g.senders))), every, start.Add(length))
		})
	}
	wg.Wait()
	r := result{elapsed: time.Since(start)}
	for _, s := range g.senders {
		r.latencies = append(r.latencies, s.latencies...)
		r.replayed += s.replayed
	}
	slices.Sort(r.latencies)
	r.requests = len(r.latencies)
	return r, errors.Join(errs...)
}

func (s *sender) full(end time.Time) error {
	for now := time.Now(); now.Before(end) || s.n < s.repeat; { // warming up makes every key known
		if err := s.exchange(); err != nil {
			return err
		}
		done := time.Now()
		s.latencies = append(s.latencies, done.Sub(now))
		now = done
	}
	return nil
}

// paced sends when a request is due and counts from then: a server that stalls
// makes the requests late that wait for it meanwhile.
func (s *sender) paced(due time.Time, every time.Duration, end time.Time) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ; due.Before(end); due = due.Add(every) {
		timer.Reset(time.Until(due)) // at once when it is late
		<-timer.C
		if err := s.exchange(); err != nil {
			return err
		}
		s.latencies = append(s.latencies, time.Since(due))
	}
	return nil
}

// exchange sends one request and reads its answer, which must be a 200.
func (s *sender) exchange() error {
	n := s.n
	if s.n++; s.repeat != 0 {
		n %= s.repeat
	}
	for i := keyLength - 1; i >= 12; i-- {
		s.key[i] = "0123456789abcdef"[n&15]
		n >>= 4
	}
	if _, err := s.conn.Write(s.request); err != nil {
		return err
	}
	s.answer = s.answer[:0]
	for {
		n, err := s.conn.Read(s.answer[len(s.answer):cap(s.answer)])
		if err != nil {
			return fmt.Errorf("the answer ended early: %w", err)
		}
		s.answer = s.answer[:len(s.answer)+n]
		if whole(s.answer) {
			break
		}
		if len(s.answer) == cap(s.answer) {
			return fmt.Errorf("the answer is longer than %d bytes", cap(s.answer))
		}
	}
	if !bytes.HasPrefix(s.answer, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("the server answered %q", s.answer)
	}
	if bytes.Contains(s.answer, []byte("Idempotent-Replayed: true")) {
		s.replayed++
	}
	return nil
}

// whole tells whether an answer has ended.
func whole(answer []byte) bool {
	const length = "Content-Length: "
	head := bytes.Index(answer, []byte("\r\n\r\n"))
	if head < 0 {
		return false
	}
	at := bytes.Index(answer[:head+2], []byte(length))
	if at < 0 {
		return false
	}
	value := answer[at+len(length) : head+2]
	n, err := strconv.Atoi(string(value[:bytes.IndexByte(value, '\r')]))
	return err == nil && len(answer) >= head+4+n
}

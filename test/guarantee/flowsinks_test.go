package guarantee

import (
	"bytes"
	"encoding/json"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
)

// tally counts what reached the outside world: order -> the effect's own key
// (Message-ID, Idempotency-Key) -> how often.
type tally struct {
	mu   sync.Mutex
	seen map[string]map[string]int
}

func newTally() *tally { return &tally{seen: map[string]map[string]int{}} }

func (c *tally) add(order, key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen[order] == nil {
		c.seen[order] = map[string]int{}
	}
	c.seen[order][key]++
}

// of is what was seen of an order: its keys, and how often in all.
func (c *tally) of(order string) (keys, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.seen[order] {
		times += n
	}
	return len(c.seen[order]), times
}

// orders is how many orders were seen.
func (c *tally) orders() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// repeats is how many more there were than orders.
func (c *tally) repeats() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := -len(c.seen)
	for _, keys := range c.seen {
		for _, times := range keys {
			n += times
		}
	}
	return n
}

// short is the time that an effect takes: a kill meets some of them.
func short() <-chan time.Time { return time.After(rand.N(40 * time.Millisecond)) }

// mailSink is an SMTP server on loopback that takes every e-mail, now and then
// only at the second try.
type mailSink struct {
	addr  string
	mails *tally
}

func newMailSink(t *testing.T) *mailSink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &mailSink{addr: l.Addr().String(), mails: newTally()}
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &mailSession{m}, nil }))
	s.Domain, s.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-done })
	return m
}

type mailSession struct{ sink *mailSink }

func (s *mailSession) Reset()                               {}
func (s *mailSession) Logout() error                        { return nil }
func (s *mailSession) Mail(string, *smtp.MailOptions) error { return nil }
func (s *mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }

func (s *mailSession) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	<-short()
	if rand.N(20) == 0 {
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 3, 0}, Message: "try again"}
	}
	s.sink.mails.add(msg.Header.Get("Subject"), msg.Header.Get("Message-Id"))
	<-short()
	return nil
}

// postSink is an HTTP target on loopback. What it takes at /crm it refuses now
// and then for a while, or takes and loses the answer; at /charge it is reliable.
type postSink struct {
	url           string
	calls, charge *tally
}

func newPostSink(t *testing.T) *postSink {
	t.Helper()
	p := &postSink{calls: newTally(), charge: newTally()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /crm", func(w http.ResponseWriter, r *http.Request) {
		order := orderOf(r)
		<-short()
		switch rand.N(20) {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case 1:
			p.calls.add(order, r.Header.Get("Idempotency-Key"))
			panic(http.ErrAbortHandler)
		}
		p.calls.add(order, r.Header.Get("Idempotency-Key"))
		<-short()
		_, _ = io.WriteString(w, `{"ok":true}`)
	})
	mux.HandleFunc("POST /charge", func(_ http.ResponseWriter, r *http.Request) {
		order := orderOf(r)
		p.charge.add(order, r.Header.Get("Idempotency-Key"))
		<-short()
	})
	s := httptest.NewUnstartedServer(mux)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

func orderOf(r *http.Request) string {
	var body struct{ Order struct{ ID string } }
	_ = json.NewDecoder(r.Body).Decode(&body)
	return body.Order.ID
}

package receiver_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/telemetry"
	"github.com/hookonce/hookonce/receiver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore claims in memory. before, when set, is asked first.
type fakeStore struct {
	mu     sync.Mutex
	first  map[string]hookonce.Claim
	claims []hookonce.Claim
	before func(ctx context.Context, n int) error
}

func (s *fakeStore) ClaimOne(ctx context.Context, c hookonce.Claim) (hookonce.Claimed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.claims = append(s.claims, c)
	if s.before != nil {
		if err := s.before(ctx, len(s.claims)); err != nil {
			return hookonce.Claimed{}, err
		}
	}
	return s.claim(c), nil
}

func (s *fakeStore) claim(c hookonce.Claim) hookonce.Claimed {
	name := c.Claimed().String()
	first, known := s.first[name]
	if known && first.Token != c.Token {
		return hookonce.Claimed{
			Outcome: hookonce.Duplicate, Key: first.Event.Key, First: first.Answer,
			FirstSeen: first.Event.ReceivedAt, Fingerprint: first.Fingerprint,
		}
	}
	for _, k := range c.Previous {
		if first, known := s.first[k.String()]; known && first.Token != c.Token {
			return hookonce.Claimed{Outcome: hookonce.Duplicate, Key: first.Event.Key, First: first.Answer, Fingerprint: first.Fingerprint}
		}
	}
	for _, k := range c.Previous {
		s.first[k.String()] = c
	}
	s.first[name] = c
	return hookonce.Claimed{Outcome: hookonce.New, Key: c.Event.Key, Entry: hookonce.EntryID{Lo: uint64(len(s.first))}}
}

// reset forgets everything.
func (s *fakeStore) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first, s.claims = map[string]hookonce.Claim{}, nil
}

func (s *fakeStore) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.claims)
}

func (s *fakeStore) last(t *testing.T) hookonce.Claim {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.claims) == 0 {
		t.Fatal("nothing was claimed")
	}
	return s.claims[len(s.claims)-1]
}

// fakeBroker is relay, publisher and confirmer.
type fakeBroker struct {
	mu        sync.Mutex
	offered   []hookonce.Entry
	published []hookonce.Event
	confirmed []hookonce.Entry
	err       error
}

func (b *fakeBroker) Offer(e hookonce.Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.offered = append(b.offered, e)
}

func (b *fakeBroker) Publish(ctx context.Context, e hookonce.Event) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := errors.Join(ctx.Err(), b.err); err != nil {
		return err
	}
	b.published = append(b.published, e)
	return nil
}

func (b *fakeBroker) Confirm(ctx context.Context, e hookonce.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := errors.Join(ctx.Err(), b.err); err != nil {
		return err
	}
	b.confirmed = append(b.confirmed, e)
	return nil
}

// bench is a receiver with everything around it faked.
type bench struct {
	store   *fakeStore
	broker  *fakeBroker
	metrics *telemetry.Metrics
	logs    *strings.Builder
	handler http.Handler
}

// now is when all requests of the tests arrive.
var now = time.Unix(1700000000, 0)

func newBench(t testing.TB, sources ...receiver.Source) *bench {
	return newBenchWith(t, func(*receiver.Config) {}, sources...)
}

func newBenchWith(t testing.TB, change func(*receiver.Config), sources ...receiver.Source) *bench {
	t.Helper()
	b := &bench{
		store:   &fakeStore{first: map[string]hookonce.Claim{}},
		broker:  &fakeBroker{},
		metrics: telemetry.NewMetrics(prometheus.NewRegistry()),
		logs:    &strings.Builder{},
	}
	cfg := receiver.Config{
		Sources: sources, Store: b.store, Relay: b.broker, Publisher: b.broker, Confirmer: b.broker, Metrics: b.metrics,
		Logger: slog.New(slog.NewTextHandler(b.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:    func() time.Time { return now },
	}
	change(&cfg)
	rc, err := receiver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.handler = rc.Handler()
	return b
}

// post sends a body; headers are name, value, name, value.
func (b *bench) post(path, body string, headers ...string) *httptest.ResponseRecorder {
	return b.send(httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)), headers...)
}

// postChunked sends a body whose length is not known in advance.
func (b *bench) postChunked(path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, io.MultiReader(strings.NewReader(body)))
	r.ContentLength = -1
	return b.send(r, headers...)
}

func (b *bench) send(r *http.Request, headers ...string) *httptest.ResponseRecorder {
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

// count is hookonce_deliveries_total.
func (b *bench) count(t *testing.T, source, outcome string) float64 {
	t.Helper()
	return counter(t, b.metrics.Deliveries.WithLabelValues(source, outcome))
}

func counter(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	if err := c.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetCounter().GetValue()
}

// wantStatus checks the status, and the form of an error's body.
func wantStatus(t *testing.T, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	if w.Code != status {
		t.Fatalf("status %d, want %d; body %s", w.Code, status, w.Body)
	}
	if status < 300 {
		return
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("content type %q", got)
	}
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Type == "" || p.Title == "" || p.Status != status {
		t.Errorf("problem %s: %v", w.Body, err)
	}
	if w.Header().Get("Hookonce-Key") != "" {
		t.Error("an error names a key")
	}
	if (status == http.StatusServiceUnavailable) != (w.Header().Get("Retry-After") != "") {
		t.Errorf("status %d with Retry-After %q", status, w.Header().Get("Retry-After"))
	}
}

// The sources that many tests use.
var (
	stripeSource = receiver.Source{Name: "stripe", Provider: "stripe", Secrets: []string{"whsec_new_B05", "whsec_test_secret", "whsec_test_B01"}}
	demoSource   = receiver.Source{
		Name: "demo", Verify: receiver.Verify{Scheme: "none"},
		Keys: []string{"header:Idempotency-Key", "json:order_id"}, Type: receiver.TypeRule{From: "json:type"},
	}
)

func with(s receiver.Source, change func(*receiver.Source)) receiver.Source {
	change(&s)
	return s
}

// signStripe makes the header that Stripe would send.
func signStripe(secret string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	return fmt.Sprintf("t=%d,v1=%x", at.Unix(), mac.Sum(nil))
}

func b64(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

func alwaysDown(context.Context, int) error { return errDown }

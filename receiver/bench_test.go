package receiver_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/receiver"
)

// newStore answers "new" and keeps nothing.
type newStore struct{}

func (newStore) ClaimOne(_ context.Context, c hookonce.Claim) (hookonce.Claimed, error) {
	return hookonce.Claimed{Outcome: hookonce.New, Key: c.Event.Key}, nil
}

type nowhere struct{ header http.Header }

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w *nowhere) WriteHeader(int)             {}

// BenchmarkReceive is the receiver's own share of an accepted delivery: a
// signed Stripe event of 3 KiB, without network and store.
func BenchmarkReceive(b *testing.B) {
	body := []byte(`{"object":"event","data":{"object":{"text":"` + strings.Repeat("x", 3000-109) + `","id":"pi_1"}},"id":"evt_1","type":"payment_intent.succeeded"}`)
	setup := newBenchWith(b, func(c *receiver.Config) {
		c.Store, c.Relay, c.Logger = newStore{}, nil, slog.New(slog.NewTextHandler(io.Discard, nil))
	}, stripeSource)
	header := http.Header{
		"Stripe-Signature": {signStripe("whsec_new_B05", now, body)},
		"Content-Type":     {"application/json; charset=utf-8"}, "User-Agent": {"Stripe/1.0 (+https://stripe.com/docs/webhooks)"},
		"Accept": {"*/*; q=0.5, application/xml"}, "Cache-Control": {"no-cache"}, "Accept-Encoding": {"gzip"},
	}
	w := &nowhere{header: http.Header{}}
	r := httptest.NewRequest(http.MethodPost, "/hooks/stripe", nil)
	r.Header = header
	r.ContentLength = int64(len(body))
	reader := bytes.NewReader(body)
	r.Body = io.NopCloser(reader)
	setup.handler.ServeHTTP(w, r)
	if w.header.Get("Hookonce-Key") != "stripe/evt_1" {
		b.Fatalf("not accepted: %v", w.header)
	}
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		reader.Reset(body)
		clear(w.header)
		setup.handler.ServeHTTP(w, r)
	}
}

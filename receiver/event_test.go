package receiver_test

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/receiver"
	"github.com/hookonce/hookonce/receiver/provider"
)

// TestKeptHeaders: credentials, signatures and transfer headers never stay.
func TestKeptHeaders(t *testing.T) {
	sent := []string{
		"X-Shop", "a", "X-Two", "1", "X-Two", "2", "Authorization", "Bearer x", "Cookie", "c=1", "Proxy-Authorization", "p", "Proxy-Connection", "x",
		"Connection", "close, X-Hop", "X-Hop", "h", "Te", "trailers", "Upgrade", "h2c", "Content-Type", "application/json", "User-Agent", "u\xff",
		"Idempotency-Key", "k",
	}
	source := with(demoSource, func(s *receiver.Source) { s.Verify = receiver.Verify{Scheme: "none", Header: "X-Signature"} })
	tests := []struct {
		keep []string
		want map[string]string
	}{
		{nil, map[string]string{"X-Shop": "a", "X-Two": "1, 2", "Content-Type": "application/json", "User-Agent": "u\uFFFD", "Idempotency-Key": "k"}},
		{[]string{"x-shop", "authorization"}, map[string]string{"X-Shop": "a"}},
		{[]string{}, map[string]string{}},
	}
	for _, test := range tests {
		b := newBench(t, with(source, func(s *receiver.Source) { s.KeepHeaders = test.keep }))
		wantStatus(t, b.post("/hooks/demo", order, sent...), 200)
		if got := b.store.last(t).Event.Header; !maps.Equal(got, test.want) {
			t.Errorf("keep %q: %q", test.keep, got)
		}
	}
}

// TestKeptHeadersBound: at most 8 KiB, in the order of names.
func TestKeptHeadersBound(t *testing.T) {
	b := newBench(t, demoSource)
	var sent []string
	for i := range 20 {
		sent = append(sent, fmt.Sprintf("X-%02d", i), strings.Repeat("v", 1000))
	}
	wantStatus(t, b.post("/hooks/demo", order, sent...), 200)
	names := slices.Sorted(maps.Keys(b.store.last(t).Event.Header))
	if len(names) != 8 || names[7] != "X-07" {
		t.Errorf("kept %q", names)
	}
}

func TestEvent(t *testing.T) {
	b := newBench(t, with(demoSource, func(s *receiver.Source) {
		s.Type = receiver.TypeRule{From: "json:kind", Map: map[string]string{"paid": "payment.confirmed"}}
		s.Unmatched = "drop"
		s.Retention = time.Hour
	}))
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	wantStatus(t, b.post("/hooks/demo", `{"order_id":7,"kind":"paid"}`, "Traceparent", trace, "Content-Type", "a/b; "+strings.Repeat("x", 260)), 200)
	c := b.store.last(t)
	e := c.Event
	if e.Type != "payment.confirmed" || e.Unmatched != "drop" || e.TraceParent != trace || e.ContentType != "" || !e.ReceivedAt.Equal(now) || e.Parked != "" {
		t.Errorf("event %+v", e)
	}
	if c.TTL != time.Hour || c.Answer.Status != 200 || c.Lookup != nil || c.Fingerprint == [16]byte{} {
		t.Errorf("claim %+v", c)
	}
	wantStatus(t, b.post("/hooks/demo", `{"order_id":8,"kind":"other"}`, "Traceparent", trace[:54]+"-"), 200)
	if e := b.store.last(t).Event; e.Type != "other" || e.TraceParent != "" {
		t.Errorf("event %+v", e)
	}
	wantStatus(t, b.post("/hooks/demo", `{"order_id":9}`), 200)
	if e := b.store.last(t).Event; e.Type != "unknown" {
		t.Errorf("type %q", e.Type)
	}
	if c.Token == b.store.last(t).Token {
		t.Error("two requests have one token")
	}
}

// TestAcceptEscaped: patterns see the escaped type, and a constant type works.
func TestAcceptEscaped(t *testing.T) {
	b := newBench(t,
		with(demoSource, func(s *receiver.Source) { s.Accept = []string{"a_20b.#"} }),
		with(demoSource, func(s *receiver.Source) {
			s.Name, s.Type, s.Accept = "fixed", receiver.TypeRule{From: "=order.paid"}, []string{"order.paid"}
		}),
	)
	wantStatus(t, b.post("/hooks/demo", `{"order_id":1,"type":"a b.c"}`), 200)
	wantStatus(t, b.post("/hooks/demo", `{"order_id":2,"type":"b.c"}`), 200)
	wantStatus(t, b.post("/hooks/fixed", `{"order_id":3,"type":"b.c"}`), 200)
	if b.store.calls() != 2 || b.count(t, "demo", "filtered") != 1 || b.store.last(t).Event.Type != "order.paid" {
		t.Errorf("%d claims", b.store.calls())
	}
}

// TestSettings: what New refuses, by the words of its error.
func TestSettings(t *testing.T) {
	tests := map[string]func(*receiver.Source){
		"name":           func(s *receiver.Source) { s.Name = "a/b" },
		"path":           func(s *receiver.Source) { s.Path = "/hooks/:id" },
		"provider":       func(s *receiver.Source) { s.Provider = "nobody" },
		"scheme":         func(s *receiver.Source) { s.Verify = receiver.Verify{} },
		"recipe":         func(s *receiver.Source) { s.Keys = []string{"order.id"} },
		"of the request": func(s *receiver.Source) { s.Keys = []string{"received_at"} },
		"type:":          func(s *receiver.Source) { s.Type.From = "body" },
		"accept:":        func(s *receiver.Source) { s.Accept = []string{"order*"} },
		"respond:":       func(s *receiver.Source) { s.Respond.Status = 302 },
		"no body":        func(s *receiver.Source) { s.Respond = receiver.Respond{Status: 204, Body: "x"} },
		"retention":      func(s *receiver.Source) { s.Retention = -1 },
		"window":         func(s *receiver.Source) { s.Body.Window = -1 },
		"ignore":         func(s *receiver.Source) { s.Body.Ignore = []string{"a"} },
		"JSON path":      func(s *receiver.Source) { s.Body = receiver.BodyKey{Canonical: true, Ignore: []string{"a."}} },
		"on_no_key":      func(s *receiver.Source) { s.OnNoKey = "drop" },
		"unmatched":      func(s *receiver.Source) { s.Unmatched = "park" },
		"on_store_down":  func(s *receiver.Source) { s.OnStoreDown = "accept" },
		"ack":            func(s *receiver.Source) { s.Ack = "maybe" },
		"two sources":    func(s *receiver.Source) { s.Name = "stripe" },
		"has the path":   func(s *receiver.Source) { s.Path = "/hooks/stripe" },
		"of its own": func(s *receiver.Source) {
			s.Provider, s.Secrets, s.Verify = "stripe", []string{"whsec_x"}, receiver.Verify{Header: "X-Signature"}
		},
		"tolerance": func(s *receiver.Source) {
			s.Provider, s.Secrets, s.Verify = "stripe", []string{"whsec_x"}, receiver.Verify{Tolerance: -1}
		},
	}
	for words, change := range tests {
		_, err := receiver.New(receiver.Config{Store: &fakeStore{}, Sources: []receiver.Source{stripeSource, with(demoSource, change)}})
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
	confirm := with(demoSource, func(s *receiver.Source) { s.Ack = "confirm" })
	_, err := receiver.New(receiver.Config{
		Relay: &fakeBroker{}, TrustedProxies: []string{"nonsense"},
		Sources: []receiver.Source{confirm, {Name: "b", Provider: "stripe", Secrets: []string{"whsec_new_B05\n"}}},
	})
	for _, words := range []string{"Store is nil", "ack: confirm", "trusted_proxies", "source b"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s is not in %v", words, err)
		}
	}
	if !errors.Is(err, provider.ErrConfig) || strings.Contains(fmt.Sprint(err), "whsec_new_B05") {
		t.Errorf("%v", err)
	}
}

// TestServer: headers over the limit are refused by the server itself, and a
// body shorter than announced is not an event.
func TestServer(t *testing.T) {
	b := newBench(t, demoSource)
	server := receiver.NewHTTPServer("127.0.0.1:0", b.handler, nil)
	listener, err := net.Listen("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error)
	go func() { served <- server.Serve(listener) }()

	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "POST /hooks/demo HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 100\r\n\r\n{}"); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 12)
	if _, err := conn.Read(answer); err != nil || string(answer) != "HTTP/1.1 400" {
		t.Errorf("%q, %v", answer, err)
	}
	_ = conn.Close()

	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+listener.Addr().String()+"/hooks/demo", strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Large", strings.Repeat("x", 80<<10))
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge || b.store.calls() != 0 {
		t.Errorf("status %d, %d claims", res.StatusCode, b.store.calls())
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Fatal(err)
	}
}

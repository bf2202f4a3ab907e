package effect_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/consumer/effect"
)

var loopback = []string{"127.0.0.0/8", "::1"}

// target is a server of the test that counts what it is asked.
func target(t *testing.T, h http.HandlerFunc) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h(w, r)
	}))
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, asked
}

// forwarder compiles a forward that may go to loopback.
func forwarder(t *testing.T, f effect.Forward) *effect.Forwarder {
	t.Helper()
	f.AllowPrivate = append(f.AllowPrivate, loopback...)
	c, err := f.Compile()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answers(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestForwardSendsTheBodyAsReceivedUnderOneKey(t *testing.T) {
	const body = `{"id": 1,  "n": 10.00}`
	type request struct {
		Method, Path, Body string
		Header             http.Header
	}
	got := make(chan request, 1)
	url, _ := target(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- request{r.Method, r.URL.RequestURI(), string(b), r.Header}
	})
	f := forwarder(t, effect.Forward{
		URL: url + "/in?tenant=1", Secrets: []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte("new")), "old"},
		Headers: []string{"x-shop", "X-Absent"}, Now: func() time.Time { return time.Unix(1764590400, 0) },
	})
	try := paid(body)
	try.Key = "shop/A.1 ç/tickets/tell-crm"
	try.Event.Key.ID = "A.1 ç"
	try.Event.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if err := f.Do(t.Context(), try); err != nil {
		t.Fatal(err)
	}
	r := <-got
	for _, name := range []string{"Accept-Encoding"} {
		r.Header.Del(name)
	}
	sign := func(key string) string {
		mac := hmac.New(sha256.New, []byte(key))
		fmt.Fprintf(mac, "shop/A%%2E1%%20%%C3%%A7/tickets/tell-crm.1764590400.%s", body)
		return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	want := request{"POST", "/in?tenant=1", body, http.Header{
		"Content-Type": {"application/json; charset=utf-8"}, "Content-Length": {strconv.Itoa(len(body))}, "User-Agent": {"hookonce"},
		"Idempotency-Key": {"shop/A.1%20%C3%A7/tickets/tell-crm"}, "Hookonce-Key": {"shop/A.1%20%C3%A7"},
		"Hookonce-Attempt": {"2/12"}, "Hookonce-Retry-In": {"2"}, "X-Shop": {"loja 7"},
		"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"Webhook-Id":  {"shop/A%2E1%20%C3%A7/tickets/tell-crm"}, "Webhook-Timestamp": {"1764590400"},
		"Webhook-Signature": {sign("new") + " " + sign("old")},
	}}
	if d := cmp.Diff(want, r); d != "" {
		t.Error(d)
	}
}

// The vector is the one of the Standard Webhooks specification.
func TestForwardSignsAsStandardWebhooksDoes(t *testing.T) {
	got := make(chan string, 1)
	url, _ := target(t, func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Webhook-Signature") })
	f := forwarder(t, effect.Forward{
		URL: url, Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, Now: func() time.Time { return time.Unix(1614265330, 0) },
	})
	try := paid(`{"test": 2432232314}`)
	try.Key = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	if err := f.Do(t.Context(), try); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", <-got); d != "" {
		t.Error(d)
	}
}

func TestForwardTakesAnAnswerForWhatItSays(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for _, tt := range []struct {
		name    string
		success string
		answer  http.HandlerFunc
		want    fate
		text    string // part of the error; empty: none is wanted
	}{
		{"200", "", answers(200, ""), fate{}, ""},
		{"204", "", answers(204, ""), fate{}, ""},
		{"299", "", answers(299, "x"), fate{}, ""},
		{"400", "", answers(400, `{"error": "no such shop"}`), permanent, `answered 400: {"error": "no such shop"}`},
		{"410", "", answers(410, ""), permanent, "answered 410"},
		{"408", "", answers(408, ""), retried, "answered 408"},
		{"425", "", answers(425, ""), retried, "answered 425"},
		{"429", "", answers(429, "", "Retry-After", "7"), fate{after: 7 * time.Second}, "answered 429"},
		{"429 until a time", "", answers(429, "", "Retry-After", in(90*time.Second)), fate{after: 90 * time.Second}, "answered 429"},
		{"429 for ever", "", answers(429, "", "Retry-After", "99999999999999999999"), fate{after: time.Hour}, "answered 429"},
		{"500", "", answers(500, "broken\n\tby  \x1b[31m us"), retried, "answered 500: broken by [31m us"},
		{"503", "", answers(503, "", "Retry-After", in(-time.Minute)), retried, "answered 503"},
		{"301", "", answers(301, "", "Location", "https://elsewhere.example/secret-path"), permanent, "a redirect to https://elsewhere.example: redirects are not followed, set url"},
		{"304", "", answers(304, ""), permanent, "answered 304, a redirect: redirects"},
		{"success", "json.ok == true and status == 200", answers(200, `{"ok":true}`), fate{}, ""},
		{"no success", "json.ok == true", answers(200, `{"ok":false,"error":"duplicate"}`), retried, `answered 200, but success is false: {"ok":false,"error":"duplicate"}`},
		{"no JSON", "json.ok == true", answers(200, "fine"), retried, "success is false: fine"},
		{"success in a header", `headers["x-result"] == "done"`, answers(202, "", "X-Result", "done"), fate{}, ""},
		{"success that cannot be told", "json.ok > 1", answers(200, `{"ok":"yes"}`), unknown, "success cannot be told: a text cannot be compared with a number"},
		{"no success asked of a failure", "json.ok", answers(422, `{"ok":true}`), permanent, "answered 422"},
		{"a long answer", "json.ok", answers(200, `{"ok":true,"x":"`+strings.Repeat("x", 1<<20)+`"}`), unknown, "too much"},
		{"a long error", "", answers(500, strings.Repeat("é", 1000)), retried, strings.Repeat("é", 100) + "…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url, asked := target(t, tt.answer)
			f := forwarder(t, effect.Forward{URL: url + "/secret-path", Success: tt.success, Now: func() time.Time { return now }})
			err := f.Do(t.Context(), paid("{}"))
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if tt.text == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if d := cmp.Diff(tt.want, fateOf(t, err), cmp.AllowUnexported(fate{})); d != "" {
				t.Errorf("%v: %s", err, d)
			}
			if !strings.HasPrefix(err.Error(), "forward to "+url+": ") || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "secret-path") {
				t.Errorf("error %q, want the target and %q, without the path", err, tt.text)
			}
		})
	}
}

// hijack speaks over the connection as it likes once the request has come.
func hijack(say string, reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, say)
		if reset {
			_ = conn.(*net.TCPConn).SetLinger(0)
		}
		_ = conn.Close()
	}
}

// hang answers nothing until the client has gone.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // only then does the server watch the connection
	<-r.Context().Done()
}

// What is certain not to have happened is tried again; what may have is for
// on_unknown to decide. Every request is a try of its own.
func TestForwardTellsWhatMayHaveHappened(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	selfSigned := httptest.NewUnstartedServer(answers(200, ""))
	selfSigned.Config.ErrorLog = quiet
	selfSigned.StartTLS()
	defer selfSigned.Close()
	plain, _ := target(t, answers(200, ""))
	hangs, _ := target(t, hang)
	silent := silentListener(t)
	url := func(h http.HandlerFunc) string { u, _ := target(t, h); return u }
	for _, tt := range []struct {
		name, url, success string
		want               fate
		text               string
	}{
		{"refused", closed.URL, "", retried, "refused: "},
		{"no such name", "http://no..such.name/x", "", retried, "dns: "}, // refused before anybody is asked
		{"certificate", selfSigned.URL, "", retried, "tls: "},
		{"no TLS there", strings.Replace(plain, "http:", "https:", 1), "", retried, "tls: "},
		{"handshake hangs", "https://" + silent, "", retried, "timeout: "},
		{"answer hangs", hangs, "", unknown, "timeout: "},
		{"reset after the request", url(hijack("", true)), "", unknown, "reset: "},
		{"closed after the request", url(hijack("", false)), "", unknown, "reset: "},
		{"reset within the header", url(hijack("HTTP/1.1 200 OK\r\nContent-Le", true)), "", unknown, "failed: "},
		{"nonsense", url(hijack("220 mail.example.com ESMTP\r\n\r\n", false)), "", unknown, "failed: "},
		{"reset within the answer, success to find", url(hijack("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"ok\":", true)), "json.ok", unknown, "broke off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := effect.Forward{URL: tt.url, Success: tt.success}
			if tt.text == "timeout: " {
				e.Timeout = 300 * time.Millisecond
			}
			f := forwarder(t, e)
			err := f.Do(t.Context(), paid(`{"a":1}`))
			if d := cmp.Diff(tt.want, fateOf(t, err), cmp.AllowUnexported(fate{})); d != "" {
				t.Errorf("%v: %s", err, d)
			}
			if !strings.Contains(err.Error(), ": "+tt.text) && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %q lacks %q", err, tt.text)
			}
		})
	}
}

func TestForwardIsDoneWhenTheStatusSaysSoAndTheAnswerBreaksOff(t *testing.T) {
	url, _ := target(t, hijack("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthank", true))
	if err := forwarder(t, effect.Forward{URL: url}).Do(t.Context(), paid("{}")); err != nil {
		t.Error(err)
	}
}

// net/http repeats a request with an Idempotency-Key on its own when a kept
// connection breaks: each request must be a try that is recorded.
func TestForwardNeverRepeatsARequestUnseen(t *testing.T) {
	for _, body := range []string{`{"a":1}`, ""} {
		var n atomic.Int64
		url, asked := target(t, func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) == 1 {
				answers(200, "")(w, r)
				return
			}
			hijack("", false)(w, r)
		})
		f := forwarder(t, effect.Forward{URL: url})
		if err := f.Do(t.Context(), paid(body)); err != nil {
			t.Fatal(err)
		}
		if got := fateOf(t, f.Do(t.Context(), paid(body))); got != unknown {
			t.Errorf("%+v, want unknown", got)
		}
		if got := asked.Load(); got != 2 {
			t.Errorf("body %q: %d requests for two tries", body, got)
		}
	}
}

func TestForwardGoesToNoPrivateAddressUnlessAllowed(t *testing.T) {
	url, asked := target(t, answers(200, ""))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	// The name is resolved when the connection is made, so only then can it be refused.
	f, err := effect.Forward{URL: "http://localhost:" + port}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	err = f.Do(t.Context(), paid("{}"))
	if got := fateOf(t, err); got != retried || !strings.Contains(err.Error(), "is no public address: where it is meant, set allow_private: [ ") {
		t.Errorf("%+v %v", got, err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("asked %d times", n)
	}
	if err := forwarder(t, effect.Forward{URL: "http://localhost:" + port}).Do(t.Context(), paid("{}")); err != nil {
		t.Errorf("allowed: %v", err)
	}
}

func TestPublicAddresses(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("169.254.169.254/32")}
	for text, public := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "2606:2800:220:1:248:1893:25c8:1946": true, "::ffff:8.8.8.8": true,
		"64:ff9b::8.8.8.8": true, "2002:0808:0808::1": true,
		"10.1.2.3": true, "169.254.169.254": true, "::ffff:10.1.2.3": true, // allowed
		"10.2.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "::ffff:192.168.1.1": false, "fd00:ec2::254": false, "fc00::1": false,
		"127.0.0.1": false, "127.255.0.1": false, "::1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"169.254.1.1": false, "fe80::1": false, "fe80::1%eth0": false, "100.64.0.1": false, "100.100.100.200": false, "192.0.0.192": false,
		"168.63.129.16": false, "224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false,
		"64:ff9b::10.0.0.1": false, "2002:7f00:0001::1": false, "::127.0.0.1": false, "fec0::1": false,
	} {
		if why := effect.Refused(netip.MustParseAddr(text), allowed); (why == "") != public {
			t.Errorf("%s: %q", text, why)
		}
	}
}

func TestForwardSparesATargetThatIsDown(t *testing.T) {
	url, asked := target(t, answers(503, ""))
	f := forwarder(t, effect.Forward{URL: url})
	f.SetBreaker(3, time.Hour)
	for range 3 {
		_ = f.Do(t.Context(), paid("{}"))
	}
	err := f.Do(t.Context(), paid("{}"))
	got := fateOf(t, err)
	if !strings.Contains(err.Error(), "circuit breaker") || got.permanent || got.unknown || got.after <= 50*time.Minute || got.after > time.Hour {
		t.Errorf("%+v %v", got, err)
	}
	if n := asked.Load(); n != 3 {
		t.Errorf("an open breaker let through: asked %d times", n)
	}
}

func TestForwardComesBackToATargetThatIsWell(t *testing.T) {
	var healthy atomic.Bool
	url, _ := target(t, func(w http.ResponseWriter, r *http.Request) {
		status := 503
		if healthy.Load() {
			status = 200
		}
		answers(status, "")(w, r)
	})
	f := forwarder(t, effect.Forward{URL: url})
	f.SetBreaker(3, 50*time.Millisecond)
	for range 3 {
		_ = f.Do(t.Context(), paid("{}"))
	}
	healthy.Store(true)
	eventually(t, "the breaker closes", func() error { return f.Do(t.Context(), paid("{}")) })
	if err := f.Do(t.Context(), paid("{}")); err != nil {
		t.Error(err)
	}
}

// A target that answers is not down, whatever it says of an event.
func TestForwardDoesNotTakeRefusalsForATargetThatIsDown(t *testing.T) {
	url, asked := target(t, answers(422, ""))
	f := forwarder(t, effect.Forward{URL: url})
	f.SetBreaker(3, time.Hour)
	for range 10 {
		_ = f.Do(t.Context(), paid("{}"))
	}
	if n := asked.Load(); n != 10 {
		t.Errorf("asked %d times of 10", n)
	}
}

func TestForwardKeepsItsRate(t *testing.T) {
	url, asked := target(t, answers(200, ""))
	f := forwarder(t, effect.Forward{URL: url, Rate: effect.Rate{Count: 20, Per: time.Second}})
	began := time.Now()
	for range 5 {
		if err := f.Do(t.Context(), paid("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("5 calls at 20/s took %s", took)
	}
	// A turn that would come too late is not waited for, and nothing has happened.
	slow := forwarder(t, effect.Forward{URL: url, Rate: effect.Rate{Count: 1, Per: time.Hour}})
	if err := slow.Do(t.Context(), paid("{}")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	before := asked.Load()
	err := slow.Do(ctx, paid("{}"))
	if got := fateOf(t, err); got.after < 50*time.Minute || got.unknown || got.permanent || asked.Load() != before {
		t.Errorf("%+v %v", got, err)
	}
}

// Breaking off says nothing about the target, and nothing happened unless the
// request was on its way.
func TestForwardEndsWithItsContext(t *testing.T) {
	come := make(chan struct{}, 1)
	url, _ := target(t, func(w http.ResponseWriter, r *http.Request) { come <- struct{}{}; hang(w, r) })
	f := forwarder(t, effect.Forward{URL: url})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { failed <- f.Do(ctx, paid("")) }()
	<-come
	cancel()
	err := <-failed
	if got := fateOf(t, err); got != unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v %v", got, err)
	}
	if got := fateOf(t, f.Do(ctx, paid(""))); got != retried {
		t.Errorf("%+v before anything was sent", got)
	}
}

func TestForwardNeverShowsItsSecrets(t *testing.T) {
	url, _ := target(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		_, _ = io.WriteString(w, "you sent "+r.Header.Get("Authorization")+" and hunter2 and c2VjcmV0MQ== secret2")
	})
	f := forwarder(t, effect.Forward{
		URL: strings.Replace(url, "://", "://user:hunter2@", 1) + "/T0/hunter2", Secrets: []string{"whsec_c2VjcmV0MQ==", "secret2"},
	})
	var shown strings.Builder
	if err := f.Preview(&shown, paid("{}")); err != nil {
		t.Fatal(err)
	}
	texts := []string{f.Do(t.Context(), paid("{}")).Error()}
	closed := forwarder(t, effect.Forward{URL: "http://user:hunter2@127.0.0.1:1/T0/hunter2?hunter2"})
	texts = append(texts, closed.Do(t.Context(), paid("{}")).Error(), strings.Replace(shown.String(), "/T0/hunter2", "", 1))
	for _, text := range texts {
		for _, secret := range []string{"hunter2", "c2VjcmV0MQ", "secret2", "secret1", base64.StdEncoding.EncodeToString([]byte("user:hunter2"))} {
			if strings.Contains(text, secret) {
				t.Errorf("%q shows %s", text, secret)
			}
		}
	}
	if !strings.Contains(texts[0], "you sent Basic *** and *** and ***") {
		t.Errorf("the answer is not shown: %q", texts[0])
	}
}

func TestForwardUsesTLSAsTheTargetOffersIt(t *testing.T) {
	s := httptest.NewUnstartedServer(answers(200, ""))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	f := forwarder(t, effect.Forward{URL: s.URL, RootCAs: roots})
	if err := f.Do(t.Context(), paid("{}")); err != nil {
		t.Error(err)
	}
	f.Close()
}

func FuzzRetryAfter(f *testing.F) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, seed := range []string{"", "0", "120", " 7 ", "-1", "1e3", "99999999999999999999", "1.5", "Mon, 30 Nov 2026 12:00:30 GMT", "Monday, 30-Nov-26 12:01:00 GMT", "Mon Nov 30 12:02:00 2026", "soon"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if d := effect.RetryAfterOf(value, now); d < 0 || d > time.Hour {
			t.Errorf("%q: %s", value, d)
		}
	})
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "120": 2 * time.Minute, " 7 ": 7 * time.Second, "-1": 0, "1.5": 0, "soon": 0, "3601": time.Hour, "99999999999999999999": time.Hour,
		"Mon, 30 Nov 2026 12:00:30 GMT": 30 * time.Second, "Monday, 30-Nov-26 12:01:00 GMT": time.Minute, "Mon Nov 30 12:02:00 2026": 2 * time.Minute,
		"Mon, 30 Nov 2026 11:00:30 GMT": 0, "Tue, 30 Nov 2027 12:00:00 GMT": time.Hour,
	} {
		if got := effect.RetryAfterOf(value, now); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

// FuzzHeaderKey: two keys never share a header, and no key breaks one.
func FuzzHeaderKey(f *testing.F) {
	f.Add("shop/A-1/g/e", "shop/A%2D1/g/e")
	f.Add("a b", "a%20b")
	f.Add(strings.Repeat("é", 100)+"1", strings.Repeat("é", 100)+"2")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := effect.HeaderKey(a), effect.HeaderKey(b)
		if (a == b) != (x == y) {
			t.Errorf("%q and %q: %q and %q", a, b, x, y)
		}
		if len(x) > 255 || strings.ContainsFunc(x, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q is no header value", x)
		}
	})
}

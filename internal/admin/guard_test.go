package admin_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/admin"
)

func TestWithoutTokenOnlyLoopbackNamesAreAnswered(t *testing.T) {
	e := newEnv(t)
	h := admin.New(e.opts).Handler()
	for host, want := range map[string]int{
		"127.0.0.1:8081": 200, "127.0.0.1": 200, "localhost:8081": 200, "LOCALHOST": 200, "[::1]:8081": 200, "[::1]": 200,
		"evil.example": 421, "127.0.0.1.evil.example:8081": 421, "localhost.evil.example": 421, "": 421, "192.168.0.1": 421,
	} {
		for _, path := range []string{"/api/v1/dead", "/healthz"} {
			if code, body := get(h, "GET", local+path, "Host", host); code != want {
				t.Errorf("%q %s: %d %s", host, path, code, body)
			}
		}
	}
}

func TestChangesFromOtherOriginsAreRefused(t *testing.T) {
	e := newEnv(t)
	for _, token := range []string{"", "t"} {
		e.opts.Token = token
		h := admin.New(e.opts).Handler()
		code, body := get(h, "POST", local+"/api/v1/dead/replay", "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site",
			"Authorization", "Bearer t")
		if code != http.StatusForbidden || !strings.Contains(body, `"status":403`) {
			t.Errorf("%d %s", code, body)
		}
	}
}

func TestWithATokenEverythingButTheProbesNeedsIt(t *testing.T) {
	e := newEnv(t)
	e.opts.Token = "s3cret"
	e.opts.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("up 1")) })
	h := admin.New(e.opts).Handler()
	for _, c := range []struct {
		path, auth string
		want       int
	}{
		{"/api/v1/dead", "", 401},
		{"/api/v1/dead", "Bearer wrong", 401},
		{"/api/v1/dead", "Bearer ", 401},
		{"/api/v1/dead", "Basic s3cret", 401},
		{"/nothing", "", 401},
		{"/api/v1/dead", "Bearer s3cret", 200},
		{"/api/v1/dead", "bearer s3cret", 200},
		{"/nothing", "Bearer s3cret", 404},
		{"/healthz", "", 200},
		{"/readyz", "", 200},
		{"/metrics", "", 200},
	} {
		// With a token any name is answered.
		code, body := get(h, "GET", "http://hooks.internal"+c.path, "Authorization", c.auth)
		if code != c.want || strings.Contains(body, "s3cret") {
			t.Errorf("%s %q: %d %s", c.path, c.auth, code, body)
		}
	}
	e.client = &admin.Client{BaseURL: admin.LocalURL, Transport: admin.HandlerTransport(h), Token: "s3cret"}
	if _, err := e.client.Dead(t.Context(), admin.Selection{}, admin.Page{}); err != nil {
		t.Error(err)
	}
	e.client.Token = "other"
	_, err := e.client.Dead(t.Context(), admin.Selection{}, admin.Page{})
	if err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("err %v", err)
	}
}

func TestReadinessNamesWhatIsWrong(t *testing.T) {
	checks := []admin.Check{{Name: "inbox", OK: true}, {Name: "broker", Detail: "connection refused"}}
	h := admin.Probes(func(context.Context) []admin.Check { return checks }, nil)
	code, body := get(h, "GET", "http://anything/readyz")
	want := `{"ready":false,"checks":[{"name":"inbox","ok":true},{"name":"broker","ok":false,"detail":"connection refused"}]}`
	if code != http.StatusServiceUnavailable || body != want {
		t.Errorf("%d %s", code, body)
	}
	checks[1].OK = true
	if code, _ := get(h, "GET", "http://anything/readyz"); code != http.StatusOK {
		t.Errorf("ready: %d", code)
	}
	if code, body := get(h, "GET", "http://anything/metrics"); code != http.StatusNotFound || !strings.Contains(body, `"status":404`) {
		t.Errorf("metrics: %d %s", code, body)
	}
}

func TestTheClientSpeaksToARealServer(t *testing.T) {
	e := newEnv(t)
	e.bury("a", "b")
	e.opts.Token = "t"
	srv := httptest.NewServer(admin.New(e.opts).Handler())
	defer srv.Close()
	e.client = &admin.Client{BaseURL: srv.URL + "/", Token: "t", Transport: srv.Client().Transport}
	lines, totals := e.replay(admin.Change{All: true})
	if len(lines) != 2 || totals.Replayed != 2 {
		t.Errorf("%v %+v", lines, totals)
	}
	e.client.BaseURL = "http://127.0.0.1:1"
	if _, err := e.client.DeadGroups(t.Context(), admin.Selection{}); err == nil {
		t.Error("nobody answered, and no error")
	}
}

func TestHandlerTransportBreaksOffOnAPanic(t *testing.T) {
	c := &admin.Client{BaseURL: admin.LocalURL, Transport: admin.HandlerTransport(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"key":"a"`))
		panic("ouch")
	}))}
	if _, err := c.Replay(t.Context(), admin.Change{All: true}, nil); err == nil || !strings.Contains(err.Error(), "before the totals") {
		t.Errorf("err %v", err)
	}
}

func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-03-01T10:00:00-03:00": time.Date(2026, 3, 1, 13, 0, 0, 0, time.UTC),
		"2026-03-01":                time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
		"7d":                        now.AddDate(0, 0, -7),
		"90m":                       now.Add(-90 * time.Minute),
	} {
		if got, err := admin.ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "now", "-1h", "-2d", "99999d", "2026-13-01"} {
		if _, err := admin.ParseTime(text, now); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

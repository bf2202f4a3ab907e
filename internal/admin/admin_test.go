package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/admin"
	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sent is one event that the fake queue took.
type sent struct {
	group string
	d     wire.Delivery
}

// fakeQueue keeps what is sent.
type fakeQueue struct {
	mu   sync.Mutex
	sent []sent
	err  error
	then func(group string, d wire.Delivery)
}

func (q *fakeQueue) Send(_ context.Context, group string, d wire.Delivery) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return q.err
	}
	q.sent = append(q.sent, sent{group, d})
	if q.then != nil {
		q.then(group, d)
	}
	return nil
}

// env is a service over a fresh inbox.
type env struct {
	*testing.T
	inbox  *inbox.Inbox
	queue  *fakeQueue
	now    time.Time
	client *admin.Client
	opts   admin.Options
}

func newEnv(t *testing.T) *env {
	t.Helper()
	db, err := sqlite.OpenDB(t.Context(), filepath.Join(t.TempDir(), "inbox.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	e := &env{T: t, queue: &fakeQueue{}, now: time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)}
	e.inbox = inbox.New(db, inbox.SQLite, inbox.Options{Now: func() time.Time { return e.now }})
	if err := e.inbox.CheckSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.opts = admin.Options{
		Inbox: e.inbox, Queue: e.queue, Groups: []string{"g"}, Now: func() time.Time { return e.now },
		Logger: slog.New(slog.DiscardHandler),
	}
	e.serve()
	return e
}

// serve makes the client speak to a service with the present options.
func (e *env) serve() {
	e.client = &admin.Client{BaseURL: admin.LocalURL, Transport: admin.HandlerTransport(admin.New(e.opts).Handler())}
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func event(id string) hookonce.Event {
	return hookonce.Event{
		Key: hookonce.Key{Source: "shop", ID: id}, Type: "order.paid", ContentType: "application/json",
		Body: []byte(`{"id":1}`), Header: map[string]string{"X-A": "b"},
	}
}

// begin starts an event in group g.
func (e *env) begin(ev hookonce.Event) inbox.Lease {
	e.Helper()
	ev.ReceivedAt = e.now
	vs, err := e.inbox.Begin(e.Context(), "g", []wire.Delivery{{Event: ev}}, 5)
	e.must(err)
	return vs[0].Lease
}

// bury makes dead letters, a second apart.
func (e *env) bury(ids ...string) {
	e.Helper()
	for _, id := range ids {
		ev := event(id)
		ev.ReceivedAt = e.now
		e.must(e.inbox.Bury(e.Context(), e.begin(ev), inbox.Letter{Event: ev, Reason: inbox.Failed, Step: "s", Error: "boom 7"}))
		e.now = e.now.Add(time.Second)
	}
}

// replay collects the lines of a replay.
func (e *env) replay(c admin.Change) ([]string, admin.Totals) {
	e.Helper()
	var lines []string
	totals, err := e.client.Replay(e.Context(), c, func(l admin.Line) { lines = append(lines, l.Key+" "+l.Group+" "+l.Result) })
	e.must(err)
	return lines, totals
}

// get asks the handler directly.
func get(h http.Handler, method, target string, header ...string) (int, string) {
	r := httptest.NewRequest(method, target, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	body, _ := io.ReadAll(w.Body)
	return w.Code, strings.TrimSpace(string(body))
}

const local = "http://127.0.0.1:8081"

func TestListsHaveTheNamesOfTheContract(t *testing.T) {
	e := newEnv(t)
	e.bury("a")
	h := admin.New(e.opts).Handler()
	for path, want := range map[string]string{
		"/api/v1/events": `{"items":[{"key":"shop/a","source":"shop","type":"order.paid","group":"g","state":"dead",` +
			`"received_at":"2026-03-01T12:00:00.123Z","deliveries":null,"attempts":1,"last_error":"boom 7"}],"next":"`,
		"/api/v1/dead": `{"items":[{"key":"shop/a","source":"shop","type":"order.paid","group":"g","dead_at":"2026-03-01T12:00:00.123Z",` +
			`"attempts":1,"reason":"failed","step":"s","last_error":"boom 7","generation":0}],"next":"`,
		"/api/v1/dead/groups": `{"items":[{"group":"g","type":"order.paid","reason":"failed","error":"boom ?","count":1,` +
			`"first":"2026-03-01T12:00:00.123Z","last":"2026-03-01T12:00:00.123Z"}],"next":""}`,
		"/api/v1/events?source=none": `{"items":[],"next":""}`,
		"/api/v1/events/shop/a": `{"items":[{"key":"shop/a","source":"shop","type":"order.paid","group":"g","state":"dead",` +
			`"received_at":"2026-03-01T12:00:00.123Z","deliveries":null,"attempts":1,"last_error":"boom 7","generation":0,` +
			`"steps":[{"name":"s","state":"failed","attempts":1,"at":"2026-03-01T12:00:00.123Z","detail":"boom 7"}],"timeline":[`,
	} {
		if code, body := get(h, "GET", local+path); code != http.StatusOK || !strings.HasPrefix(body, want) {
			t.Errorf("%s: %d %s\nwant %s", path, code, body, want)
		}
	}
}

func TestEventsArePagedAndShown(t *testing.T) {
	e := newEnv(t)
	odd := "a/b%2F ?#\xff\x00.."
	for _, id := range []string{"one", "two", odd, ".."} {
		e.bury(id)
	}
	var got []string
	page := admin.Page{Limit: 3}
	for {
		l, err := e.client.Events(t.Context(), admin.Selection{State: "dead", Since: "2h"}, page)
		e.must(err)
		for _, item := range l.Items {
			got = append(got, item.Key)
		}
		if l.Next == "" {
			break
		}
		page.After = l.Next
	}
	if fmt.Sprint(got) != `[shop/.. shop/a%2Fb%252F%20?#%FF%00.. shop/two shop/one]` {
		t.Errorf("events %v", got)
	}
	for _, id := range []string{odd, "..", "one"} {
		details, err := e.client.Event(t.Context(), hookonce.Key{Source: "shop", ID: id})
		e.must(err)
		if d := details[0]; d.State != "dead" || len(d.Timeline) != 3 || d.Body != `{"id":1}` || d.Headers["X-A"] != "b" {
			t.Errorf("%q: %+v", id, d)
		}
	}
	_, err := e.client.Event(t.Context(), hookonce.Key{Source: "shop", ID: "none"})
	if !errors.Is(err, inbox.ErrNotFound) {
		t.Errorf("err %v", err)
	}
}

func TestBadQueriesAreNamed(t *testing.T) {
	e := newEnv(t)
	h := admin.New(e.opts).Handler()
	for path, want := range map[string]string{
		"/api/v1/events?stat=dead":       `"stat" is no filter`,
		"/api/v1/events?state=deaf":      `"deaf" is none of accepted`,
		"/api/v1/dead?reason=x":          `"x" is none of failed`,
		"/api/v1/dead?since=yesterday":   `since:`,
		"/api/v1/dead?type=or*":          `type:`,
		"/api/v1/dead?key=nosource":      `key:`,
		"/api/v1/dead?limit=0":           `limit:`,
		"/api/v1/dead?after=rubbish":     `after:`,
		"/api/v1/events/onlysource%2Fid": `not a full key`,
	} {
		code, body := get(h, "GET", local+path)
		if code/100 != 4 || !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := get(h, "POST", local+"/api/v1/dead"); code != http.StatusMethodNotAllowed || !strings.Contains(body, "takes GET") {
		t.Errorf("%d %s", code, body)
	}
}

// TestFullKeyComesBack: what JSON says of a key names the same key again, also
// where a template has escaped a part of it, and where it is no text.
func TestFullKeyComesBack(t *testing.T) {
	for id, want := range map[string]string{
		"A-1":                 "s/A-1",
		"orders/paid:1":       "s/orders/paid:1",
		"OPENPIX%3ACHARGE:x1": "s/OPENPIX%3ACHARGE:x1",
		"100%":                "s/100%",
		"café ☕":              "s/café ☕",
		"a\xffb%41":           "s/a%FFb%2541",
	} {
		k := hookonce.Key{Source: "s", ID: id}
		text := admin.FullKey(k)
		if text != want {
			t.Errorf("%q is %q, want %q", id, text, want)
		}
		if got, err := admin.ParseFullKey(text); err != nil || got != k {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, err := admin.ParseFullKey("nothing"); err == nil {
		t.Error("no key was read as one")
	}
}

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/store/sqlite"
	"github.com/hookonce/hookonce/receiver"
	"github.com/hookonce/hookonce/receiver/provider"
)

// printedSources is a configuration made of what --print-source prints.
func printedSources(t *testing.T) string {
	t.Helper()
	text := "sources:\n"
	for _, p := range provider.All() {
		code, out, errs := call(t, "send", "--provider", p.Name, "--print-source")
		if code != 0 || errs != "" {
			t.Fatalf("%s: exit code %d, stderr %s", p.Name, code, errs)
		}
		if !strings.HasPrefix(out, "  "+p.Name+":\n") {
			t.Errorf("%s: the entry begins with %.40q", p.Name, out)
		}
		text += out
	}
	return text
}

// roundTrip is a receiver on SQLite with every provider's printed source.
type roundTrip struct {
	store *sqlite.Store
	url   string
	last  hookonce.EntryID
}

func newRoundTrip(t *testing.T) *roundTrip {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("h.yaml", []byte(printedSources(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(config.Options{File: "h.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "h.db"), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	rc, err := receiver.New(receiver.Config{Sources: sources(cfg), Store: store, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(rc.Handler())
	t.Cleanup(func() {
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &roundTrip{store: store, url: server.URL}
}

// events are what was accepted since the last look.
func (r *roundTrip) events(t *testing.T) []hookonce.Event {
	t.Helper()
	var events []hookonce.Event
	for {
		entries, err := r.store.Pending(context.Background(), r.last, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == 0 {
			return events
		}
		for _, e := range entries {
			events = append(events, e.Event)
			r.last = e.ID
		}
	}
}

// sent runs send and reads its lines.
func sent(t *testing.T, want int, args ...string) []answerLine {
	t.Helper()
	code, out, errs := call(t, append([]string{"send", "--json"}, args...)...)
	if code != want {
		t.Fatalf("%v: exit code %d, want %d: %s%s", args, code, want, errs, out)
	}
	var lines []answerLine
	for line := range strings.Lines(out) {
		var a answerLine
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, a)
	}
	return lines
}

// TestEveryProviderGoesRound: for each preset, twenty copies at once are one
// event (dedup: none: twenty), a tampered copy is refused and leaves nothing.
func TestEveryProviderGoesRound(t *testing.T) {
	const copies = 20
	r := newRoundTrip(t)
	for _, p := range provider.All() {
		t.Run(p.Name, func(t *testing.T) {
			hook := r.url + "/hooks/" + p.Name
			for _, a := range sent(t, 0, "--provider", p.Name, "--tamper", "--duplicates", "3", hook) {
				if a.Status != http.StatusUnauthorized || a.Key != "" || a.Replayed {
					t.Errorf("tampered: %+v", a)
				}
			}
			if got := r.events(t); len(got) != 0 {
				t.Fatalf("a tampered copy left %v", got)
			}

			lines := sent(t, 0, "--provider", p.Name, "--duplicates", fmt.Sprint(copies), "--concurrency", fmt.Sprint(copies), hook)
			replayed := 0
			for _, a := range lines {
				if a.Replayed {
					replayed++
				}
				if a.Status != lines[0].Status || (a.Key == "") == (a.Items == "") {
					t.Errorf("answers differ: %+v and %+v", a, lines[0])
				}
			}
			want := 1
			if p.NoDedup {
				want = copies
			}
			events := r.events(t)
			if len(events) != want || len(lines) != copies || replayed != copies-want {
				t.Fatalf("%d events from %d answers, %d of them replayed; want %d events", len(events), len(lines), replayed, want)
			}
			e := events[0]
			if e.Key.Source != p.Name || e.Parked != "" || e.Type == "unknown" && p.Name != "generic" || len(e.Body) == 0 {
				t.Errorf("event %s of type %s, parked %q", e.Key, e.Type, e.Parked)
			}
			for _, name := range []string{"Authorization", "X-Hub-Signature-256", "Stripe-Signature"} {
				if e.Header[name] != "" {
					t.Errorf("the credential %s is kept", name)
				}
			}
			// The next one is another event.
			if again := sent(t, 0, "--provider", p.Name, hook); again[0].Replayed || len(r.events(t)) != 1 {
				t.Errorf("a second event is taken for the first: %+v", again)
			}
		})
	}
}

func TestSendLines(t *testing.T) {
	r := newRoundTrip(t)
	code, out, errs := call(t, "send", "--provider", "stripe", "--id", "X1", "--duplicates", "2", r.url+"/hooks/stripe")
	if want := "200\tfalse\tstripe/evt_X1\n200\ttrue\tstripe/evt_X1\n"; code != 0 || out != want || errs != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	code, out, errs = call(t, "send", "--provider", "adyen", r.url+"/hooks/adyen")
	if want := "200\tfalse\tnew=1, duplicate=0, filtered=0, parked=0\n"; code != 0 || out != want {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"send":                      {2, "URL"},
		"send http://127.0.0.1:1/x": {2, "--provider"},
		"send --provider nobody http://127.0.0.1/x":                              {3, "nobody"},
		"send --provider stripe ftp://h/x":                                       {2, "no URL"},
		"send --provider stripe --duplicates 0 http://127.0.0.1:1/x":             {2, "--duplicates"},
		"send --provider stripe --concurrency 999 http://h/x":                    {2, "--concurrency"},
		"send --provider nobody --print-source":                                  {3, "nobody"},
		"send --provider stripe " + r.url + "/hooks/other":                       {1, "not accepted"},
		"send --provider stripe --secret whsec_wrong " + r.url + "/hooks/stripe": {1, "not accepted"},
		"send --provider generic --tamper " + r.url + "/hooks/stripe":            {0, ""},
		"send --provider stripe http://127.0.0.1:1/x":                            {1, "answer"},
		"providers show nobody":                                                  {3, "nobody"},
		"providers show":                                                         {2, "one name"},
		"explain":                                                                {2, "--provider"},
		"explain --provider x":                                                   {3, "x"},
	} {
		code, _, errs := call(t, strings.Fields(line)...)
		if code != want.code || !strings.Contains(errs, want.text) {
			t.Errorf("%q: exit code %d with %q, want %d with %q", line, code, errs, want.code, want.text)
		}
	}
}

func TestProvidersAreListed(t *testing.T) {
	code, out, errs := call(t, "providers", "list", "--json")
	if code != 0 || errs != "" {
		t.Fatal(code, errs)
	}
	names := map[string]bool{}
	for line := range strings.Lines(out) {
		var l map[string]string
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		for _, field := range []string{"name", "title", "confidence", "key", "dedup"} {
			if l[field] == "" {
				t.Errorf("%s without %s", l["name"], field)
			}
		}
		names[l["name"]] = true
		code, page, errs := call(t, "providers", "show", l["name"])
		if code != 0 || errs != "" || !strings.Contains(page, l["key"]) || !strings.Contains(page, "beware") || !strings.Contains(page, "sources:\n  "+l["name"]) {
			t.Errorf("show %s: %d %s%s", l["name"], code, page, errs)
		}
	}
	if len(names) != 35 || !names["stripe"] || !names["generic"] || !names["stone-openbank"] {
		t.Errorf("%d providers", len(names))
	}
}

// rawRequest is a copy of a provider's delivery as it stands on the wire.
func rawRequest(t *testing.T, name string) string {
	t.Helper()
	p, _ := provider.Lookup(name)
	target, _ := url.Parse("http://hooks.example.com/hooks/" + name)
	draft, err := p.Sample.Copy(target, "X1", "", time.Now(), time.Now(), false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := draft.Request(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// explained runs explain on a request.
func explained(t *testing.T, request string, args ...string) (int, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "request.http")
	if err := os.WriteFile(file, []byte(request), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out bytes.Buffer
	c := &cli{program: "hookonce", stdout: &out, stderr: &out}
	root := c.root()
	root.SetArgs(append([]string{"explain"}, args...))
	root.SetIn(in)
	root.SetOut(&out)
	err = root.ExecuteContext(context.Background())
	report(&out, "hookonce", err)
	return exitCode(err), out.String()
}

func TestExplain(t *testing.T) {
	t.Chdir(t.TempDir())
	merging := "sources:\n  shop:\n    verify: none\n    key: [ \"json:order.id\" ]\n    type: json:event\n"
	if err := os.WriteFile("h.yaml", []byte(merging), 0o600); err != nil {
		t.Fatal(err)
	}
	order := "POST /hooks/shop HTTP/1.1\nHost: h\nContent-Type: application/json\n\n{\"event\":\"order.paid\",\"order\":{\"id\":7}}\n"
	for name, test := range map[string]struct {
		request string
		args    []string
		want    []string
	}{
		"signed":     {rawRequest(t, "stripe"), []string{"--provider", "stripe", "--secret", "whsec_hookonce_test"}, []string{"verify     accepted", "stripe/evt_X1", "json:id is present", "payment_intent.succeeded"}},
		"wrong":      {rawRequest(t, "stripe"), []string{"--provider", "stripe", "--secret", "whsec_other"}, []string{"401 signature", "none of the secrets"}},
		"no secret":  {rawRequest(t, "stripe"), []string{"--provider", "stripe"}, []string{"not checked", "stripe/evt_X1"}},
		"no request": {"hello", []string{"--provider", "stripe"}, []string{"no HTTP request"}},
		"split":      {rawRequest(t, "whatsapp"), []string{"--provider", "whatsapp", "--secret", "hookonce-test-secret"}, []string{"items      1", "whatsapp/100:wamid.X1", "messages.text"}},
		"merging":    {order, []string{"--source", "shop", "--config", "h.yaml"}, []string{"shop/7", "may merge events", "json:order.id"}},
		"challenge":  {"GET /hooks/whatsapp?hub.mode=subscribe&hub.challenge=1&hub.verify_token=x HTTP/1.1\nHost: h\n\n", []string{"--provider", "whatsapp"}, []string{"403 handshake"}},
	} {
		_, out := explained(t, test.request, test.args...)
		for _, want := range test.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, out)
			}
		}
	}
}

// TestPrintedKeyIsFoundAgain: a key as the command line prints it names the
// event, also where its recipe has escaped a part.
func TestPrintedKeyIsFoundAgain(t *testing.T) {
	const stored = "woovi/OPENPIX%3ACHARGE_COMPLETED:charge:x/1"
	printed := escape(stored)
	if want := "woovi/OPENPIX%253ACHARGE_COMPLETED:charge:x%2F1"; printed != want {
		t.Errorf("%s is printed as %s, want %s", stored, printed, want)
	}
	if key, err := hookonce.ParseKey(printed); err != nil || key.String() != stored {
		t.Errorf("%s names %s, %v", printed, key, err)
	}
}

// FuzzExplain: no text makes explain panic, and what is no request is told so.
func FuzzExplain(f *testing.F) {
	for _, name := range []string{"stripe", "whatsapp", "twilio", "stone-openbank"} {
		p, _ := provider.Lookup(name)
		target, _ := url.Parse("http://hooks.example.com/hooks/" + name)
		d, err := p.Sample.Copy(target, "X1", "", time.Now(), time.Now(), false)
		if err != nil {
			f.Fatal(err)
		}
		r, err := d.Request(context.Background())
		if err != nil {
			f.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(name, b.Bytes())
	}
	f.Add("generic", []byte("POST / HTTP/1.1\nContent-Length: -1\nTransfer-Encoding: chunked\n\nx"))
	f.Add("github", []byte("GET http://h/ HTTP/1.0\n\n"))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		r, err := readRequest(bytes.NewReader(text))
		if err != nil {
			return
		}
		if _, ok := provider.Lookup(name); !ok {
			name = "stripe"
		}
		found, err := receiver.Explain(receiver.Config{Logger: slog.New(slog.DiscardHandler)}, receiver.Source{Name: name, Provider: name}, r)
		if err != nil || len(found) == 0 {
			t.Fatalf("%v, %d findings", err, len(found))
		}
	})
}

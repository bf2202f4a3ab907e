package receiver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hookonce/hookonce/internal/recipe"
	"github.com/hookonce/hookonce/receiver"
	"github.com/hookonce/hookonce/receiver/provider"
)

// inputOf is a request in which a recipe's parts have the given values.
func inputOf(t *rapid.T, parts []string, values []string) *recipe.Input {
	in := &recipe.Input{Header: http.Header{}, Form: url.Values{}}
	query, doc, context := url.Values{}, map[string]any{}, map[string]any{}
	for i, part := range parts {
		kind, name, _ := strings.Cut(part, ":")
		switch kind {
		case "header":
			in.Header[name] = []string{values[i]}
		case "query":
			query.Set(name, values[i])
		case "form":
			in.Form.Set(name, values[i])
		case "json":
			put(doc, strings.Split(name, "."), values[i])
		case "context":
			put(context, strings.Split(name, "."), values[i])
		}
	}
	in.Query = query.Encode()
	in.JSON, _ = json.Marshal(doc)
	in.Context, _ = json.Marshal(context)
	return in
}

func put(doc map[string]any, path []string, value string) {
	for len(path) > 1 {
		next, ok := doc[path[0]].(map[string]any)
		if !ok {
			next = map[string]any{}
			doc[path[0]] = next
		}
		doc, path = next, path[1:]
	}
	doc[path[0]] = value
}

// TestKeysCannotCollide: within one provider, other parts make another key,
// whatever stands in them.
func TestKeysCannotCollide(t *testing.T) {
	for _, p := range provider.All() {
		for _, text := range p.Keys {
			r, err := recipe.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			parts := r.Parts()
			slices.Sort(parts)
			parts = slices.Compact(parts)
			if r.IsBody() {
				continue
			}
			t.Run(p.Name+" "+text, rapid.MakeCheck(func(t *rapid.T) {
				value := rapid.StringMatching(`[a-c:%{}.=/ 0-9A-F&~]{0,6}[a-z:%]`)
				one, two := make([]string, len(parts)), make([]string, len(parts))
				for i := range parts {
					one[i] = value.Draw(t, "one")
					two[i] = one[i]
					if rapid.Bool().Draw(t, "other") {
						two[i] = value.Draw(t, "two")
					}
				}
				first, ok1 := r.Eval(inputOf(t, parts, one))
				second, ok2 := r.Eval(inputOf(t, parts, two))
				if !ok1 || !ok2 {
					t.Fatalf("absent: %q %q", one, two)
				}
				if (first == second) != slices.Equal(one, two) {
					t.Fatalf("%q and %q give %q and %q", one, two, first, second)
				}
			}))
		}
	}
}

// reordered is a JSON document with its members in another order, other white
// space, and the same values.
func reordered(t *testing.T, doc string) string {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(doc))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	var b bytes.Buffer
	var write func(v any)
	write = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			var names []string
			for name := range v {
				names = append(names, name)
			}
			slices.Sort(names)
			rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			b.WriteString("{ ")
			for i, name := range names {
				if i > 0 {
					b.WriteString(" ,\n")
				}
				fmt.Fprintf(&b, "%q :\t", name)
				write(v[name])
			}
			b.WriteString("}")
		case []any:
			b.WriteString("[")
			for i, item := range v {
				if i > 0 {
					b.WriteString(", ")
				}
				write(item)
			}
			b.WriteString(" ]")
		default:
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(text)
		}
	}
	write(v)
	return b.String()
}

// TestRedeliveriesHaveTheSameKey: a copy that is signed anew, a minute later,
// with its members in another order and other fields of sending, is a duplicate.
func TestRedeliveriesHaveTheSameKey(t *testing.T) {
	for _, p := range provider.All() {
		if p.NoDedup || p.Name == "mercadopago" || p.Name == "mailgun" || p.Name == "paypal" {
			continue // no key; and those whose signature stands for one body
		}
		t.Run(p.Name, func(t *testing.T) {
			clock := now
			b := newBenchWith(t, func(c *receiver.Config) { c.Now = func() time.Time { return clock } }, sampleSource(t, p))
			for attempt := range 3 {
				clock = now.Add(time.Duration(attempt) * time.Minute)
				s := p.Sample
				if attempt > 0 && p.Name != "twilio" {
					filled := strings.NewReplacer("{id}", "X1", "{seconds}", fmt.Sprint(now.Unix()), "{ms}", fmt.Sprint(now.UnixMilli()), "{time}", now.UTC().Format(time.RFC3339),
						"{now_ms}", fmt.Sprint(clock.UnixMilli()), "{now}", fmt.Sprint(clock.Unix())).Replace(s.Body)
					s.Body = reordered(t, filled)
				}
				target := &url.URL{Scheme: "http", Host: "example.com", Path: "/hooks/" + p.Name}
				d, err := s.Copy(target, "X1", "", now, clock, false)
				if err != nil {
					t.Fatal(err)
				}
				r := httptest.NewRequest(http.MethodPost, d.URL.RequestURI(), bytes.NewReader(d.Body))
				r.Header = d.Header
				r.Header.Set("X-Request-Id", fmt.Sprint("attempt ", attempt))
				w := b.send(r)
				if w.Code > 299 || (w.Header().Get("Idempotent-Replayed") != "") != (attempt > 0) {
					t.Fatalf("attempt %d: %d %v %s", attempt, w.Code, w.Header(), w.Body)
				}
			}
		})
	}
}

// sampleSource is the source that a preset's sample prints.
func sampleSource(t testing.TB, p provider.Preset) receiver.Source {
	t.Helper()
	s := receiver.Source{Name: p.Name, Provider: p.Name}
	for line := range strings.SplitSeq(p.Sample.Source, "\n") {
		_, quoted, _ := strings.Cut(line, `"`)
		value, _, _ := strings.Cut(quoted, `"`)
		switch {
		case strings.HasPrefix(line, "secrets:"):
			s.Secrets = []string{value}
		case strings.Contains(line, "scheme: hmac-sha256"):
			s.Verify.Scheme = "hmac-sha256"
		case strings.Contains(line, "keys:"):
			s.Verify.Keys = []string{value}
		case strings.Contains(line, "id:"):
			s.Verify.ID = value
		}
	}
	return s
}

// FuzzRequest: whatever is sent, nobody gets a 5xx while the store works, what
// is accepted was verified, and no request panics.
func FuzzRequest(f *testing.F) {
	all := provider.All()
	var sources []receiver.Source
	for _, p := range all {
		sources = append(sources, sampleSource(f, p), receiver.Source{
			Name: "open-" + p.Name, Provider: p.Name, Verify: receiver.Verify{Scheme: "none"},
		})
	}
	b := newBenchWith(f, func(c *receiver.Config) { c.MaxBody, c.Logger = 1<<16, slog.New(slog.DiscardHandler) }, sources...)
	for i, p := range all {
		d, err := p.Sample.Copy(&url.URL{Scheme: "http", Host: "example.com", Path: "/hooks/" + p.Name}, "X1", "", now, now, false)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), d.Header.Get("Content-Type"), d.Body)
	}
	for _, body := range []string{"null", "[]", `"x"`, "42", "", "{}", `{"id":"a"}{"id":"b"}`, "a=1&a=2", "payload=%7B%7D", "\xef\xbb\xbf[{}]", `[{"sg_event_id":{}}]`, strings.Repeat("[", 600)} {
		for i := range all {
			f.Add(uint8(i), "application/x-www-form-urlencoded", []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, media string, body []byte) {
		p := all[int(which)%len(all)]
		for _, path := range []string{"/hooks/open-" + p.Name, "/hooks/" + p.Name} {
			b.store.reset()
			r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
			r.Header["Content-Type"] = []string{media}
			w := b.send(r)
			if w.Code >= 500 {
				t.Fatalf("%s: %d for %q", path, w.Code, body)
			}
			if path == "/hooks/"+p.Name && b.store.calls() > 0 && p.Name != "adyen" && p.Name != "mailgun" && p.Name != "stone-openbank" {
				t.Fatalf("%s: claimed without a signature: %q", path, body)
			}
		}
	})
}

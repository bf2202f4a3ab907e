package recipe_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/recipe"
)

func TestEval(t *testing.T) {
	in := recipe.Input{
		Key: "K", Source: "shop", Type: "order.paid",
		ReceivedAt: time.Date(2026, 11, 30, 12, 0, 0, 5e6, time.UTC),
		Header:     http.Header{"X-Event-Id": {"ev:1"}, "X-Two": {"a", "b"}, "X-Empty": {""}},
		Query:      "topic=payment&id=7&id=8&bad=%zz",
		JSON:       []byte(`{"id":9007199254740993,"f":1.0,"a":"x:y","b":{"c":"5%"},"nil":null,"e":"","o":{},"t":true,"l":[1],"h":"m-1"}`),
		Form:       url.Values{"MessageSid": {"SM1"}},
		Context:    []byte(`{"metadata":{"phone":"1:2"},"id":"of the parent"}`),
	}
	for text, want := range map[string]string{
		"header:X-Event-Id":                  "ev:1",
		"header:x-event-id":                  "ev:1",
		"header:X-Two":                       "a, b",
		"header:X-Empty":                     "",
		"header:X-Missing":                   "",
		"query:topic":                        "payment",
		"query:id":                           "7",
		"query:none":                         "",
		"form:MessageSid":                    "SM1",
		"form:none":                          "",
		"json:id":                            "9007199254740993",
		"context:metadata.phone":             "1:2",
		"context:none":                       "",
		"json:{context:metadata.phone}:{id}": "1%3A2:9007199254740993",
		"json:f":                             "1.0",
		"json:t":                             "true",
		"json:b.c":                           "5%",
		"json:l.0":                           "1",
		"json:nil":                           "",
		"json:e":                             "",
		"json:o":                             "",
		"json:l":                             "",
		"json:none":                          "",
		"json:{a}":                           "x%3Ay",
		"json:{a}:{b.c}":                     "x%3Ay:5%25",
		"json:{id}:{nil}":                    "",
		"json:{id}:{none}":                   "",
		"json:order-{id}-{h}!":               "order-9007199254740993-m%2D1!",
		"json:{id}:{header:X-Event-Id}":      "9007199254740993:ev%3A1",
		"header:{X-Event-Id}:{json:b.c}":     "ev%3A1:5%25",
		"json:{id}/{form:MessageSid}":        "9007199254740993/SM1",
		"body":                               "",
		"key":                                "K",
		"source":                             "shop",
		"type":                               "order.paid",
		"received_at":                        "2026-11-30T12:00:00.005Z",
	} {
		r, err := recipe.Parse(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, ok := r.Eval(&in)
		if ok != (want != "") || got != want {
			t.Errorf("%s = %q, %v; want %q", text, got, ok, want)
		}
		if got, ok := r.Eval(&recipe.Input{}); ok {
			t.Errorf("%s = %q of nothing", text, got)
		}
		if r.String() != text {
			t.Errorf("String of %s = %s", text, r)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "id", "json:", "json", "header:", "headers:x", "json:a..b", "json:{a}{b}", "json:{a}x{b}", "json:{a}%{b}", "json:{a}4{b}",
		"json:{a", "json:a}{b}", "json:{}", "json:{a}:{header:}", "json:{a}:{b..c}", "header: x", "Body", "json:{a}é:{b}",
	} {
		if r, err := recipe.Parse(text); !errors.Is(err, recipe.ErrRecipe) {
			t.Errorf("Parse(%q) = %v, %v", text, r, err)
		}
	}
}

func TestKinds(t *testing.T) {
	for text, want := range map[string][4]bool{ // body, json, form, from request
		"body":                {true, false, false, true},
		"body:stringify":      {false, true, false, true},
		"json:id":             {false, true, false, true},
		"form:id":             {false, false, true, true},
		"header:{a}:{json:b}": {false, true, false, true},
		"key":                 {},
		"header:a":            {false, false, false, true},
	} {
		r, err := recipe.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := [4]bool{r.IsBody(), r.NeedsJSON(), r.NeedsForm(), r.FromRequest()}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// TestStringified: the hash that guards written in Node made with
// "sha256:" + hash(JSON.stringify(req.body)); this one is Node's own.
func TestStringified(t *testing.T) {
	r, err := recipe.Parse("body:stringify")
	if err != nil || !r.IsStringified() {
		t.Fatal(r, err)
	}
	const want = "sha256:59df0d52b23f2f665f9c749ff14dff430f25cbfae8a44c12a410862bb1176c66"
	for _, body := range []string{
		`{"z":1e2,"amount":10.00,"note":"caf\u00e9 \/","id":"evt_B01"}`,
		"\xef\xbb\xbf{ \"z\":100, \"amount\":10, \"note\":\"café /\", \"id\":\"evt_B01\" }\n",
	} {
		if got, ok := r.Eval(&recipe.Input{JSON: []byte(body)}); !ok || got != want {
			t.Errorf("%s: %q, %v", body, got, ok)
		}
	}
	if got, ok := r.Eval(&recipe.Input{}); ok {
		t.Errorf("%q of nothing", got)
	}
}

// FuzzParts: two different pairs of values never give one text.
func FuzzParts(f *testing.F) {
	f.Add("a", "b:c", "a:b", "c", "json:{header:A}:{header:B}")
	f.Add("a%3A", "b", "a:", "b", "header:x-{A}4-4{B}")
	f.Fuzz(func(t *testing.T, a, b, c, d, text string) {
		r, err := recipe.Parse(text)
		if err != nil {
			return
		}
		eval := func(a, b string) (string, bool) {
			return r.Eval(&recipe.Input{Header: http.Header{"A": {a}, "B": {b}}})
		}
		first, ok1 := eval(a, b)
		second, ok2 := eval(c, d)
		both := text == "header:{A}:{B}" || text == "header:x-{A}4-4{B}" || text == "json:{header:A}:{header:B}"
		if both && ok1 && ok2 && first == second && (a != c || b != d) {
			t.Fatalf("%s: (%q, %q) and (%q, %q) are both %q", text, a, b, c, d, first)
		}
	})
}

func TestParts(t *testing.T) {
	for text, want := range map[string]string{
		"header:x-id": "header:X-Id", "json:a.b": "json:a.b", "body": "", "context:a": "context:a",
		"json:{a}.{header:x-topic}:{query:q}:{form:f}:": "json:a header:X-Topic query:q form:f",
	} {
		r, err := recipe.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.Parts(), " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if r.NeedsContext() != strings.Contains(text, "context:") {
			t.Errorf("%s: needs context: %v", text, r.NeedsContext())
		}
	}
}

package effect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/consumer/effect"
)

func TestWhenDecidesByTheEvent(t *testing.T) {
	const body = `{"order":{"id":"A-1","total":10.5,"n":9007199254740993,"paid":true,"items":[{"price":3},{"price":30}],"note":null,"tag":"vip"}}`
	for text, want := range map[string]bool{
		"json.order.total > 0": true, "json.order.total > 10.5": false, "json.order.total >= 10.5": true, "10 < json.order.total": true,
		"json.order.n == 9007199254740993": true, "json.order.n == 9007199254740992": false, "json.order.n > 9007199254740992": true,
		"json.order.paid": true, "not json.order.paid": false, "json.order.paid == true and type == \"order.paid\"": true,
		`json.order.tag == "vip"`: true, `json.order.tag in ["vip", "staff"]`: true, `json.order.tag > "vio"`: true, `json.order.tag startsWith "v"`: true,
		`any(json.order.items, .price > 20)`: true, `all(json.order.items, .price > 20)`: false, "len(json.order.items) == 2": true,
		"json.order.items[1].price == 30": true, "json.order.items[-1].price == 30": true,
		`key == "shop/A-1"`: true, `source == "shop"`: true, `headers["x-shop"] == "loja 7"`: true, `headers["X-Shop"] startsWith "loja"`: true,
		// What is missing is nil, and nil is neither true nor more nor less than anything.
		"json.nothing": false, "json.nothing.at.all": false, "json.order.id.deeper": false, "not json.nothing": true, "json.nothing and true": false, "json.nothing or true": true,
		"json.order.missing > 0": false, "json.order.missing <= 0": false, "0 < json.order.missing": false, "json.order.note == nil": true, "json.order.note != nil": false,
		"json.order.missing == 0": false, `json.order.missing == ""`: false, "json.order.items[7].price > 0": false, "json.order[\"id\"] == nil": false, "json.order[0] == nil": true,
		"any(json.missing, .price > 20)": false, "len(json.missing) == 0": true, `headers.Missing == nil`: true, `headers["x-missing"] == "a"`: false,
		"json.missing ?? true": true, "json?.missing?.at > 1": false, "json.missing ? false : true": true, `json.missing contains "x"`: false, `json.order.tag in json.missing`: false,
	} {
		when, err := effect.CompileWhen(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := when(event(body)); err != nil || got != want {
			t.Errorf("%s = %v, %v", text, got, err)
		}
		for _, other := range []string{"", "no json", "[]", "7", `"a"`, "null", `{"order":7}`, `{"order":[{"items":{}}]}`} {
			if _, err := when(event(other)); err != nil && !strings.Contains(text, "in json") && !strings.Contains(err.Error(), "cannot be") {
				t.Errorf("%s on %s: %v", text, other, err)
			}
		}
	}
}

// What the parents of a batch's item say is there too.
func TestConditionsAndRequestsKnowTheContext(t *testing.T) {
	e := event(`{"id":"wamid.1"}`)
	e.Context = []byte(`{"phone":"+55","contact":{"name":"Zoé 😀","n":7}}`)
	when, err := effect.CompileWhen(`context.contact.n > 6 and context.nothing == nil`)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := when(e); !ok || err != nil {
		t.Errorf("when: %v, %v", ok, err)
	}
	once, err := effect.CompileOncePer("context:{phone}:{json:id}")
	if err != nil {
		t.Fatal(err)
	}
	if value, err := once(e); value != "+55:wamid.1" || err != nil {
		t.Errorf("once_per: %q, %v", value, err)
	}
	f, err := effect.Forward{URL: "https://h.example.com", Headers: []string{"Hookonce-Context"}}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := f.Preview(&b, consumer.Try{Event: e}); err != nil || !strings.Contains(b.String(), `Hookonce-Context: {"phone":"+55","contact":{"name":"Zo\u00e9 \ud83d\ude00","n":7}}`) {
		t.Errorf("forward: %v\n%s", err, b.String())
	}
}

// A condition that cannot be told is a failure for a person, never a skip.
func TestWhenFailsOnWhatCannotBeCompared(t *testing.T) {
	for _, text := range []string{`json.id > 5`, `json.id`, `not json.id`, `json.n and true`, `json.n ? true : false`, `json.id + 1 > 2`, `json.n contains "x"`, `any(json.n, true)`, `json.id matches json.bad`} {
		when, err := effect.CompileWhen(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		_, err = when(event(`{"id":"A-1","n":7,"bad":"("}`))
		if got := fateOf(t, err); got != permanent || !strings.HasPrefix(err.Error(), "when: ") {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
}

func TestWhenIsCompiledAtStart(t *testing.T) {
	for text, want := range map[string]string{
		"":               "is no expression",
		"json.a >":       "is no expression",
		"jsno.a > 1":     "unknown name jsno",
		"key > 5":        "mismatched types",
		"type.name":      "has no field",
		"1 + 1":          "expected bool",
		"nosuch(json.a)": "unknown name nosuch",
		"env()":          "unknown name env",
	} {
		if _, err := effect.CompileWhen(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzWhen(f *testing.F) {
	f.Add("json.order.total > 0 and headers.A != nil", `{"order":{"total":1}}`)
	f.Add(`any(json.items, {.a in json.b})`, `{"items":[{"a":1}]}`)
	f.Add(`json[json.i] ?? (json.x?.y ? 1 : 2) == 1`, `{"i":"x","x":{"y":true}}`)
	f.Fuzz(func(t *testing.T, text, body string) {
		if len(text) > 200 || strings.Contains(text, "repeat") || strings.Contains(text, "..") {
			return // they may take their time and memory
		}
		when, err := effect.CompileWhen(text)
		if err != nil {
			return
		}
		if _, err := when(event(body)); err != nil && fateOf(t, err) != permanent {
			t.Errorf("%q on %q: %v", text, body, err)
		}
	})
}

func TestOncePerNamesAValue(t *testing.T) {
	for text, want := range map[string]string{
		"json:order.id": "A-1", "json:{order.id}:{n}": "A%3A1:7", "header:X-Shop": "loja 7", "{{ .json.order.id }}/{{ .type }}": "A-1/order.paid", "json:order.missing": "", "json:order": "", "header:X-None": "",
	} {
		id := "A-1"
		if strings.Contains(want, "%3A") {
			id = "A:1"
		}
		once, err := effect.CompileOncePer(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got, err := once(event(`{"order":{"id":"` + id + `"},"n":7}`))
		if want == "" {
			if f := fateOf(t, err); f != permanent {
				t.Errorf("%s: %q, %+v %v", text, got, f, err)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestOnlyLatestReadsEntityAndVersionBySource(t *testing.T) {
	latest, err := effect.CompileOnlyLatest(map[string]effect.Order{
		"shop": {Entity: "json:order.id", Version: "json:order.updated_at"}, "other": {Entity: "header:X-Id", Version: "json:n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	entity, version, err := latest(event(`{"order":{"id":"A-1","updated_at":"2026-11-30T12:00:00Z"}}`))
	if err != nil {
		t.Fatal(err)
	}
	want, err := consumer.ParseVersion("2026-11-30 12:00:00")
	if err != nil {
		t.Fatal(err)
	}
	if c, err := version.Compare(want); c != 0 || err != nil || entity != "A-1" {
		t.Errorf("entity %s, version %s: %d, %v", entity, version, c, err)
	}
	unknownSource := event("{}")
	unknownSource.Key = hookonce.Key{Source: "-", ID: "x"}
	for _, e := range []hookonce.Event{unknownSource, event("{}"), event(`{"order":{"id":"A-1"}}`), event(`{"order":{"id":"A-1","updated_at":"yesterday"}}`)} {
		if _, _, err := latest(e); fateOf(t, err) != permanent {
			t.Errorf("%s: %v", e.Body, err)
		}
	}
}

func TestRates(t *testing.T) {
	for text, want := range map[string]string{"50/s": "50/s", " 7 / m ": "7/m", "1000/h": "1000/h", "0/s": "", "-1/s": "", "5": "", "5/d": "", "1.5/s": "", "": ""} {
		r, err := effect.ParseRate(text)
		if d := cmp.Diff(want, r.String()); d != "" || (err == nil) != (want != "") {
			t.Errorf("%q: %v %s", text, err, d)
		}
	}
}

package jsonpath_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

func TestParse(t *testing.T) {
	for in, want := range map[string][]string{
		"id":              {"id"},
		"order.id":        {"order", "id"},
		"items.0.id":      {"items", "0", "id"},
		`a\.b.c`:          {"a.b", "c"},
		`a\\.b`:           {`a\`, "b"},
		"@this":           {"@this"},
		"#":               {"#"},
		"a|b":             {"a|b"},
		"name with *?":    {"name with *?"},
		"ünï":             {"ünï"},
		`items.#(a=="b")`: {"items", `#(a=="b")`},
	} {
		p, err := jsonpath.Parse(in)
		if err != nil {
			t.Errorf("Parse(%q): %v", in, err)
			continue
		}
		if !slices.Equal(p.Names(), want) {
			t.Errorf("Parse(%q) = %q, want %q", in, p.Names(), want)
		}
		if again, err := jsonpath.Parse(p.String()); err != nil || !slices.Equal(again.Names(), want) {
			t.Errorf("Parse(String()) of %q = %q, %v", in, again.Names(), err)
		}
	}
	for _, in := range []string{"", ".", "a.", ".a", "a..b", `a\`} {
		if _, err := jsonpath.Parse(in); !errors.Is(err, jsonpath.ErrPath) {
			t.Errorf("Parse(%q) = %v, want ErrPath", in, err)
		}
	}
}

func TestGet(t *testing.T) {
	const doc = `{"s":"a\"bé\n","n":9007199254740993,"f":1.0,"e":1e2,"z":-0,"t":true,"no":false,"nil":null,` +
		`"o":{"id":"in","0":"zero"},"a":[{"id":"first"},"x",null],"a.b":{"c|d":"piped"},"*":"star","@this":"at","#":"hash",` +
		`"Id":"upper","id":"lower","\u0069d2":"escaped name","":"empty","!x":"bang","{a}":"brace","big":[0,1,2,3,4,5,6,7,8,9,10]}`
	tests := []struct {
		path string
		kind jsonpath.Kind
		text string
	}{
		{"s", jsonpath.String, "a\"bé\n"},
		{"n", jsonpath.Number, "9007199254740993"},
		{"f", jsonpath.Number, "1.0"},
		{"e", jsonpath.Number, "1e2"},
		{"z", jsonpath.Number, "-0"},
		{"t", jsonpath.Bool, "true"},
		{"no", jsonpath.Bool, "false"},
		{"nil", jsonpath.Null, "null"},
		{"o", jsonpath.Object, `{"id":"in","0":"zero"}`},
		{"o.id", jsonpath.String, "in"},
		{"o.0", jsonpath.String, "zero"},
		{"a", jsonpath.Array, `[{"id":"first"},"x",null]`},
		{"a.0.id", jsonpath.String, "first"},
		{"a.1", jsonpath.String, "x"},
		{"a.2", jsonpath.Null, "null"},
		{"big.10", jsonpath.Number, "10"},
		{`a\.b.c|d`, jsonpath.String, "piped"},
		{"*", jsonpath.String, "star"},
		{"@this", jsonpath.String, "at"},
		{"#", jsonpath.String, "hash"},
		{"!x", jsonpath.String, "bang"},
		{"{a}", jsonpath.String, "brace"},
		{"Id", jsonpath.String, "upper"},
		{"id", jsonpath.String, "lower"},
		{"id2", jsonpath.String, "escaped name"},
	}
	for _, prefix := range []string{"", "\xef\xbb\xbf", " \n"} {
		for _, test := range tests {
			v, ok := mustPath(t, test.path).Get([]byte(prefix + doc))
			if !ok || v.Kind != test.kind || v.Text() != test.text {
				t.Errorf("%q: kind %d, text %q, found %v; want kind %d, %q", test.path, v.Kind, v.Text(), ok, test.kind, test.text)
			}
		}
	}
	for _, path := range []string{
		"missing", "o.missing", "s.x", "n.0", "nil.x", "a.3", "a.00", "a.-1", "a.id", "a.#", "a.#.id", "a.@reverse",
		"o.@keys", "o|id", "s*", "?", "..0", `@this.id`, "o.", "ID", "a.99999999999999999999", "t.x",
	} {
		p, err := jsonpath.Parse(path)
		if err != nil {
			continue
		}
		if v, ok := p.Get([]byte(doc)); ok {
			t.Errorf("%q found %q", path, v.Text())
		}
	}
}

// TestGetOutsideObjects: brackets in strings and scalars are not documents.
func TestGetOutsideObjects(t *testing.T) {
	p := mustPath(t, "id")
	for _, doc := range []string{``, `null`, `42`, `"{\"id\":1}"`, `"x{\"id\":\"y\"}"`, `[]`, `{}`, `[{"id":1}]`} {
		if v, ok := p.Get([]byte(doc)); ok {
			t.Errorf("%q: found %q", doc, v.Text())
		}
	}
	if _, ok := (jsonpath.Path{}).Get([]byte(`{"a":1}`)); ok {
		t.Error("the zero path found something")
	}
}

// TestGetFirst: of members with one name the first counts, whatever its kind.
func TestGetFirst(t *testing.T) {
	for doc, want := range map[string]string{
		`{"a":{"b":1},"a":{"b":2}}`: "1",
		`{"a":{},"a":{"b":2}}`:      "",
		`{"a":null,"a":{"b":2}}`:    "",
	} {
		v, ok := mustPath(t, "a.b").Get([]byte(doc))
		if ok != (want != "") || v.Text() != want {
			t.Errorf("%s: %q, %v", doc, v.Text(), ok)
		}
	}
}

func TestValid(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	many := func(last string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `"k%d":{"k%d":0},`, i, i)
		}
		return "{" + b.String() + last + ":1}"
	}
	tests := []struct {
		doc    string
		err    error // of Valid
		unique error // of ValidUnique
	}{
		{`{"id":"evt_A","type":"t"}`, nil, nil},
		{"\xef\xbb\xbf{}", nil, nil},
		{" [1, 2.5e-3, -0, true, false, null, \"\\ud83d\\u00e9\\/\"] \n", nil, nil},
		{`{"id":"evt_A","ID":"evt_B"}`, nil, nil},
		{`{"a":{"id":1},"b":{"id":1},"id":2}`, nil, nil},
		{`{"id":"evt_A","type":"t","id":"evt_B"}`, nil, jsonpath.ErrDuplicate},
		{`{"id":1,"\u0069d":2}`, nil, jsonpath.ErrDuplicate},
		{`[{"a":{"x":1,"y":2,"x":3}}]`, nil, jsonpath.ErrDuplicate},
		{many(`"k100"`), nil, nil},
		{many(`"k99"`), nil, jsonpath.ErrDuplicate},
		{many(`"k3"`), nil, jsonpath.ErrDuplicate},
		{deep(jsonpath.MaxDepth), nil, nil},
		{deep(jsonpath.MaxDepth + 1), jsonpath.ErrDepth, jsonpath.ErrDepth},
		{strings.Repeat("[", 1<<20), jsonpath.ErrDepth, jsonpath.ErrDepth},
	}
	for _, doc := range []string{
		"", " ", "\xef\xbb\xbf", `{"id":"a"}{"id":"b"}`, `{"id":1}x`, "{", "[", `{"a"}`, `{"a":}`, `{"a":1,}`, `[1,]`, `{a:1}`, `'a'`,
		"nul", "nan", "01", "1.", ".5", "+1", "-", "1e", "1e+", "\"\t\"", `"\x"`, `"\u12g4"`, `"`, `"\`, "\"\xff\"", "\xff\xfe{\x00}\x00",
		`{"a":1 "b":2}`, `[1 2]`, "//x\n1", `{"a":"b"`, "\x00",
	} {
		tests = append(tests, struct {
			doc         string
			err, unique error
		}{doc, jsonpath.ErrSyntax, jsonpath.ErrSyntax})
	}
	for _, test := range tests {
		if err := jsonpath.Valid([]byte(test.doc)); !errors.Is(err, test.err) {
			t.Errorf("Valid(%.60q) = %v, want %v", test.doc, err, test.err)
		}
		if err := jsonpath.ValidUnique([]byte(test.doc)); !errors.Is(err, test.unique) {
			t.Errorf("ValidUnique(%.60q) = %v, want %v", test.doc, err, test.unique)
		}
	}
}

func mustPath(t testing.TB, s string) jsonpath.Path {
	t.Helper()
	p, err := jsonpath.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestEach(t *testing.T) {
	for doc, want := range map[string][]string{
		"\xef\xbb\xbf [1, \"a\\u0062\" ,{\"x\":[]},null] ": {`=1`, `="a\u0062"`, `={"x":[]}`, `=null`},
		`{"a": 1.0,"b\u0063":[2, 3],"":true}`:              {`a=1.0`, `bc=[2, 3]`, `=true`},
		`[]`:                                               nil, `{}`: nil, `7`: nil, `"x"`: nil,
	} {
		root, ok := jsonpath.Root([]byte(doc))
		if !ok {
			t.Fatalf("%s: no root", doc)
		}
		var got []string
		root.Each(func(name string, item jsonpath.Value) bool {
			if !jsonpathValid(item.Raw) || item.Kind == 0 {
				t.Errorf("%s: item %q of kind %d", doc, item.Raw, item.Kind)
			}
			got = append(got, name+"="+string(item.Raw))
			return true
		})
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", doc, d)
		}
	}
	n := 0
	root, _ := jsonpath.Root([]byte(`[1,2,3]`))
	root.Each(func(string, jsonpath.Value) bool { n++; return n < 2 })
	if n != 2 {
		t.Errorf("%d items after the one that was the last", n)
	}
	for _, doc := range []string{"", "[", "{}{}", "\xff"} {
		if _, ok := jsonpath.Root([]byte(doc)); ok {
			t.Errorf("%q has a root", doc)
		}
	}
}

func jsonpathValid(doc []byte) bool { return jsonpath.Valid(doc) == nil }

// FuzzEach: the items are the document's own bytes, one after the other.
func FuzzEach(f *testing.F) {
	for _, doc := range []string{`[1,[2],{"a":"b"}]`, `{"a":{"b":[]},"c":"\u0000"}`, ` [ ] `, "[\"a,b]\", {\"]\":1}]"} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		root, ok := jsonpath.Root(doc)
		if !ok {
			return
		}
		at := 0
		root.Each(func(_ string, item jsonpath.Value) bool {
			next := bytes.Index(root.Raw[at:], item.Raw)
			if next < 0 || !jsonpathValid(item.Raw) {
				t.Fatalf("%q is no item of %q", item.Raw, doc)
			}
			at += next + len(item.Raw)
			return true
		})
	})
}

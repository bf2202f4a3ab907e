package jsonpath_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

// FuzzValid compares with the standard library, which knows neither UTF-8
// errors nor our depth.
func FuzzValid(f *testing.F) {
	for _, s := range []string{`{"a":[1,2,{"b":null}]}`, `"\u00e9"`, `-0.5e+10`, `{"a":1,"a":2}`, "[1,]", "\xef\xbb\xbf{}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		err := jsonpath.Valid(doc)
		if errors.Is(err, jsonpath.ErrDepth) {
			return
		}
		want := utf8.Valid(doc) && json.Valid(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")))
		if (err == nil) != want {
			t.Fatalf("Valid(%q) = %v, encoding/json says %v", doc, err, want)
		}
		if err != nil && jsonpath.ValidUnique(doc) == nil {
			t.Fatalf("%q: unique but not valid", doc)
		}
	})
}

// FuzzGet looks every name of a valid document up and compares with the
// standard library, and tries arbitrary paths for panics.
func FuzzGet(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,"x"]},"c.d":true,"*":null}`), "a.b.1")
	f.Add([]byte(`{"\u0061":"\ud83d\ude00"}`), "@this|..#(x)")
	f.Fuzz(func(t *testing.T, doc []byte, path string) {
		if p, err := jsonpath.Parse(path); err == nil {
			if v, ok := p.Get(doc); ok && v.Kind == 0 {
				t.Fatal("found a value without a kind")
			}
		}
		if jsonpath.ValidUnique(doc) != nil {
			return
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf")), &members) != nil {
			return
		}
		for name, raw := range members {
			if name == "" || bytes.ContainsRune([]byte(name), utf8.RuneError) {
				continue
			}
			v, ok := mustPath(t, escape(name)).Get(doc)
			if !ok || !bytes.Equal(v.Raw, raw) {
				t.Fatalf("%q in %q: %q, %v; want %q", name, doc, v.Raw, ok, raw)
			}
			var text string
			if v.Kind == jsonpath.String && json.Unmarshal(raw, &text) == nil && text != v.Text() {
				t.Fatalf("%q: text %q, want %q", raw, v.Text(), text)
			}
		}
	})
}

func escape(name string) string {
	var b bytes.Buffer
	for _, c := range []byte(name) {
		if c == '.' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

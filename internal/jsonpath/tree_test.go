package jsonpath_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

func written(text string) any { return "n" + text }

func TestTreeIsTheDocument(t *testing.T) {
	for doc, want := range map[string]any{
		" \xef\xbb\xbf": nil, "7": "n7", " -1.50e3 ": "n-1.50e3", `"a\u00e9\n"`: "aé\n", "true": true, "false": false, "null": nil,
		"[]": []any{}, "{}": map[string]any{}, " [ 1 , [ ] , { } , null ] ": []any{"n1", []any{}, map[string]any{}, nil},
		"\xef\xbb\xbf" + `{"a" : {"b" : [ "x" , 2 ] } , "\u0061" : 3, "":4, "c.d":true}`: map[string]any{"a": map[string]any{"b": []any{"x", "n2"}}, "": "n4", "c.d": true},
	} {
		if d := cmp.Diff(want, jsonpath.Tree([]byte(doc), written)); d != "" {
			t.Errorf("%s: %s", doc, d)
		}
	}
}

func TestWalkFindsWhatIsThere(t *testing.T) {
	tree := jsonpath.Tree([]byte(`{"a":{"b":["x",{"c":null}]},"c.d":true,"0":"zero"}`), written)
	for path, want := range map[string]any{
		"a.b.0": "x", "a.b.1.c": nil, "a.b.2": nil, "a.b.01": nil, "a.b.x": nil, "a.b.0.x": nil, `c\.d`: true, "0": "zero", "none": nil, "a.none.b": nil,
	} {
		p, err := jsonpath.Parse(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, p.Walk(tree)); d != "" {
			t.Errorf("%s: %s", path, d)
		}
	}
}

// FuzzTree: a template and a path read the same value from an event, and what
// is no document does no harm.
func FuzzTree(f *testing.F) {
	f.Add([]byte(`{"a":[1,2,{"b":null}],"a":7,"":{"c":"\ud800\u0041"}}`))
	f.Add([]byte(strings.Repeat(`[{"a":`, 40)))
	f.Add([]byte(`{"a" 1 , ]`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		tree := jsonpath.Tree(doc, func(text string) any { return text })
		if jsonpath.Valid(doc) == nil {
			compareTree(t, doc, tree, tree, "")
		}
	})
}

// compareTree compares a part of a tree with what its path finds in the document.
func compareTree(t *testing.T, doc []byte, root, tree any, path string) {
	t.Helper()
	if path != "" {
		p, err := jsonpath.Parse(path)
		if err != nil {
			t.Fatalf("%q: %v", path, err)
		}
		if d := cmp.Diff(tree, p.Walk(root)); d != "" {
			t.Errorf("Walk %s: %s", path, d)
		}
		v, ok := p.Get(doc)
		switch tree := tree.(type) {
		case map[string]any, []any:
		case nil:
			if ok && v.Kind != jsonpath.Null {
				t.Errorf("%s is %q, and nothing in the tree", path, v.Raw)
			}
		default:
			if !ok || v.Text() != fmt.Sprint(tree) {
				t.Errorf("%s is %q, and %q in the tree", path, v.Text(), tree)
			}
		}
		path += "."
	}
	switch tree := tree.(type) {
	case map[string]any:
		for name, value := range tree {
			if name == "" {
				continue // no path says it
			}
			compareTree(t, doc, root, value, path+strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(name))
		}
	case []any:
		for i, value := range tree {
			compareTree(t, doc, root, value, path+fmt.Sprint(i))
		}
	}
}

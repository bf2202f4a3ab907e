package effect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/consumer/effect"
)

func TestParseStatementNumbersNames(t *testing.T) {
	for _, c := range []struct {
		in, text string
		names    []string
	}{
		{"insert into t values (:a, :b, :a)", "insert into t values ($1, $2, $1)", []string{"a", "b"}},
		{"select ':a', \":b\", x::text, :c::int", "select ':a', \":b\", x::text, $1::int", []string{"c"}},
		{"select 'it''s :a' || :b", "select 'it''s :a' || $1", []string{"b"}},
		{`select E'\':a', :b`, `select E'\':a', $1`, []string{"b"}},
		{"select 1 -- :a\n, :b", "select 1 -- :a\n, $1", []string{"b"}},
		{"select /* :a /* :x */ :y */ :b", "select /* :a /* :x */ :y */ $1", []string{"b"}},
		{"do $$ :a $$; select :b", "do $$ :a $$; select $1", []string{"b"}},
		{"do $tag$ :a $x$ $tag$; select :b", "do $tag$ :a $x$ $tag$; select $1", []string{"b"}},
		{"select a[1:2], :order_id2", "select a[1:2], $1", []string{"order_id2"}},
		{"select 1", "select 1", nil},
	} {
		got, err := effect.ParseStatement(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if d := cmp.Diff(effect.Statement{Text: c.text, Names: c.names}, got); d != "" {
			t.Errorf("%s: %s", c.in, d)
		}
	}
}

func TestParseStatementRefusesWhatCannotBeNamed(t *testing.T) {
	for _, in := range []string{"", "  \n", "insert into t values ($1)"} {
		if s, err := effect.ParseStatement(in); err == nil {
			t.Errorf("%q: want an error, got %+v", in, s)
		}
	}
}

func FuzzParseStatement(f *testing.F) {
	for _, s := range []string{"select :a", "':a", "/* :a", "$a$ :b", "E'\\", ":", "::a", "$1", "$", "--"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := effect.ParseStatement(in)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, n := range got.Names {
			if seen[n] || n == "" {
				t.Fatalf("%q: name %q twice or empty", in, n)
			}
			seen[n] = true
		}
		if len(got.Names) == 0 && got.Text != in && !strings.Contains(in, ":") {
			t.Fatalf("%q changed to %q without a parameter", in, got.Text)
		}
	})
}

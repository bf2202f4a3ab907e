package sqltext_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/sqltext"
)

func TestParseNumbersNames(t *testing.T) {
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
		{"select $$ :a; $$, :b", "select $$ :a; $$, $1", []string{"b"}},
		{"select $tag$ :a $x$ $tag$, :b", "select $tag$ :a $x$ $tag$, $1", []string{"b"}},
		{"select a[1:2], :order_id2", "select a[1:2], $1", []string{"order_id2"}},
		{"select 1", "select 1", nil},
	} {
		got, err := sqltext.Parse(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if d := cmp.Diff(sqltext.Statement{Text: c.text, Names: c.names}, got); d != "" {
			t.Errorf("%s: %s", c.in, d)
		}
	}
}

func TestParseRefusesWhatCannotBeNamed(t *testing.T) {
	for in, want := range map[string]error{
		"": sqltext.ErrEmpty, "  \n": sqltext.ErrEmpty, "-- nothing": sqltext.ErrEmpty, " ; ": sqltext.ErrEmpty,
		"insert into t values ($1)": sqltext.ErrNumbered,
		"select 1; select 2":        sqltext.ErrSecond,
		"select ';'; /* ; */ ; x":   sqltext.ErrSecond,
	} {
		if s, err := sqltext.Parse(in); !errors.Is(err, want) {
			t.Errorf("%q: %+v, %v; want %v", in, s, err, want)
		}
	}
	for _, in := range []string{"select 1;", "select 1; -- done", "select ';'", "do $$ a; b; $$"} {
		if _, err := sqltext.Parse(in); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"select :a", "':a", "/* :a", "$a$ :b", "E'\\", ":", "::a", "$1", "$", "--"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := sqltext.Parse(in)
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

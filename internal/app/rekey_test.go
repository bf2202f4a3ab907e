package app

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
)

func TestUncoveredRecipes(t *testing.T) {
	l := func(s string) []string { return strings.Fields(s) }
	for _, c := range []struct{ what, old, keys, previous, want string }{
		{"first start", "", "a", "", ""},
		{"unchanged", "a b", "a b", "", ""},
		{"one more at the end", "a", "a b", "", ""},
		{"another", "a", "b", "", "a"},
		{"another, the old one named", "a", "b", "a", ""},
		{"one in front", "a", "b a", "", "a"},
		{"other order", "a b", "b a", "", "a"}, // b alone still gives b
		{"the first one dropped", "a b", "b", "", "a"},
		{"the last one dropped", "a b", "a", "", "b"},
		{"half of them named", "a b", "c", "b", "a"},
	} {
		if got := uncovered(l(c.old), l(c.keys), l(c.previous)); !slices.Equal(got, l(c.want)) {
			t.Errorf("%s: %v, want %v", c.what, got, l(c.want))
		}
	}
}

// book is a recipeBook in memory.
type book map[string]string

func (b book) Recipe(_ context.Context, source string) (string, error) {
	if b == nil {
		return "", errors.New("away")
	}
	return b[source], nil
}

func (b book) SetRecipe(_ context.Context, source, recipe string) error {
	b[source] = recipe
	return nil
}

func TestAChangedRecipeIsRefusedUnlessProvidedFor(t *testing.T) {
	kept := book{}
	start := func(source *config.Source, keys ...string) error {
		s := &system{
			process: &process{cfg: &config.Config{Sources: map[string]*config.Source{"orders": source, "other": {}}}},
			keys:    map[string][]string{"orders": keys, "other": {"body"}},
		}
		return s.checkRecipes(t.Context(), kept)
	}
	if err := start(&config.Source{}, "header:X", "json:id"); err != nil || kept["orders"] != `["header:X","json:id"]` {
		t.Fatalf("first start: %v, %v", err, kept)
	}
	before := maps.Clone(kept)
	err := start(&config.Source{PreviousKeys: []string{"json:id"}}, "json:order.id")
	var wrong usageError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), `["header:X","json:id"] before`) ||
		!strings.Contains(err.Error(), `previous_keys: ["header:X"]`) || !maps.Equal(kept, before) {
		t.Errorf("a change with half of the old recipes named: %v", err)
	}
	if err := start(&config.Source{PreviousKeys: []string{"header:X", "json:id"}}, "json:order.id"); err != nil {
		t.Error(err)
	}
	if err := start(&config.Source{}, "json:order.id"); err != nil {
		t.Errorf("the older recipes dropped in time: %v", err)
	}
	if err := start(&config.Source{AcceptRekey: true}, "body canonical"); err != nil || kept["orders"] != `["body canonical"]` {
		t.Errorf("accept_rekey: %v, %v", err, kept)
	}
	kept["orders"] = "written by something else"
	if err := start(&config.Source{}, "json:id"); !errors.As(err, &wrong) {
		t.Errorf("an unreadable recipe: %v", err)
	}
	kept = nil
	if err := start(&config.Source{}, "json:id"); err == nil || errors.As(err, &wrong) {
		t.Errorf("a store that is away: %v", err)
	}
}

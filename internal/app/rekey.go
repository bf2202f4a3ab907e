package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// recipeBook keeps beside the claims how each source's keys are made.
type recipeBook interface {
	// Recipe is the text kept last; "" when there is none.
	Recipe(ctx context.Context, source string) (string, error)
	SetRecipe(ctx context.Context, source, recipe string) error
}

// checkRecipes compares how keys are made now with how they were made before. A
// delivery that was accepted under one key and is repeated under another would
// take effect twice; so a change is refused, unless the configuration provides
// for it.
func (s *system) checkRecipes(ctx context.Context, book recipeBook) error {
	changed := map[string]string{}
	var refused []error
	for _, source := range sortedKeys(s.keys) {
		old, err := book.Recipe(ctx, source)
		if err != nil {
			return fmt.Errorf("how the keys of source %s were made before could not be read: %w", source, err)
		}
		now := recipeText(s.keys[source])
		if old == now {
			continue
		}
		changed[source] = now
		cfg := s.cfg.Sources[source]
		if lost := uncovered(recipeList(old), s.keys[source], cfg.PreviousKeys); len(lost) > 0 && !cfg.AcceptRekey {
			refused = append(refused, fmt.Errorf("sources.%s.key: keys were made of %s before and are made of %s now, "+
				"so that a delivery accepted before would take effect again when it is repeated: name the older recipes, "+
				"previous_keys: %s, or set accept_rekey: true when nothing accepted before can be repeated any more",
				source, old, now, recipeText(lost)))
		}
	}
	if len(refused) > 0 {
		return usageError{errors.Join(refused...)}
	}
	for _, source := range sortedKeys(changed) {
		if err := book.SetRecipe(ctx, source, changed[source]); err != nil {
			return fmt.Errorf("how the keys of source %s are made could not be kept: %w", source, err)
		}
	}
	return nil
}

// recipeText is a list as the book keeps it and as people write it.
func recipeText(keys []string) string {
	b, _ := json.Marshal(keys) // texts: cannot fail
	return string(b)
}

// recipeList reads what recipeText wrote; another text is one unknown recipe.
func recipeList(text string) []string {
	var keys []string
	switch err := json.Unmarshal([]byte(text), &keys); {
	case text == "":
		return nil
	case err != nil:
		return []string{text}
	}
	return keys
}

// uncovered are the old recipes whose keys would not be found again. One is
// found when it is among the previous keys; or when it is among the keys, and
// what stands before it there stood before it of old: then a delivery that had
// its key from it has none of those.
func uncovered(old, keys, previous []string) []string {
	var lost []string
	for i, recipe := range old {
		at := slices.Index(keys, recipe)
		same := at >= 0 && !slices.ContainsFunc(keys[:max(at, 0)], func(k string) bool { return !slices.Contains(old[:i], k) })
		if !same && !slices.Contains(previous, recipe) {
			lost = append(lost, recipe)
		}
	}
	return lost
}

package redis

import "context"

// recipesKey is a hash: how the keys of each source are made, by its name.
const recipesKey = "hookonce:recipes"

// Recipe is what SetRecipe kept for a source last; "" when nothing is kept.
func (s *Store) Recipe(ctx context.Context, source string) (string, error) {
	r := command(recipesKey, "hget", recipesKey, source)
	s.send(ctx, false, r)
	recipe, _ := r.value.(string)
	return recipe, s.unknown(r.err)
}

// SetRecipe keeps how a source's keys are made, beside its claims.
func (s *Store) SetRecipe(ctx context.Context, source, recipe string) error {
	r := command(recipesKey, "hset", recipesKey, source, recipe)
	s.send(ctx, false, r)
	return s.unknown(r.err)
}

package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// Recipe is what SetRecipe kept for a source last; "" when nothing is kept.
func (s *Store) Recipe(ctx context.Context, source string) (string, error) {
	var recipe string
	err := s.reads.QueryRowContext(ctx, "select recipe from hookonce_recipes where source = ?", source).Scan(&recipe)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return recipe, s.unknown(err)
}

// SetRecipe keeps how a source's keys are made, beside its claims.
func (s *Store) SetRecipe(ctx context.Context, source, recipe string) error {
	return s.writeOne(ctx, len(recipe), func(ctx context.Context, t *txn) error {
		_, err := t.tx.ExecContext(ctx, "insert into hookonce_recipes (source, recipe) values (?, ?) "+
			"on conflict (source) do update set recipe = excluded.recipe", source, recipe)
		return err
	})
}

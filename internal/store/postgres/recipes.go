package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

// Recipe is what SetRecipe kept for a source last; "" when nothing is kept.
func (s *Store) Recipe(ctx context.Context, source string) (string, error) {
	var recipe string
	err := s.pool.QueryRow(ctx, s.sql.recipe, source).Scan(&recipe)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return recipe, s.unknown(err)
}

// SetRecipe keeps how a source's keys are made, beside its claims.
func (s *Store) SetRecipe(ctx context.Context, source, recipe string) error {
	_, err := s.pool.Exec(ctx, s.sql.setRecipe, source, recipe)
	return s.unknown(err)
}

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce/internal/store/sqlite"
)

// TestRecipes: what is kept is there after a restart.
func TestRecipes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "hookonce.db")
	s := open(t, sqlite.Options{Path: path})
	if got, err := s.Recipe(t.Context(), "orders"); got != "" || err != nil {
		t.Fatalf("%q, %v; want nothing", got, err)
	}
	must(t, s.SetRecipe(t.Context(), "orders", `["json:id"]`))
	must(t, s.SetRecipe(t.Context(), "orders", `["json:order.id"]`))
	must(t, s.Close())
	s = open(t, sqlite.Options{Path: path})
	if got, err := s.Recipe(t.Context(), "orders"); got != `["json:order.id"]` || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	must(t, s.Close())
	if _, err := s.Recipe(t.Context(), "orders"); err == nil {
		t.Error("a closed store answers")
	}
}

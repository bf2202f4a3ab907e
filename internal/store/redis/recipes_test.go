package redis_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/store/redis"
	"github.com/hookonce/hookonce/internal/testenv"
)

// TestRecipes: what one instance keeps, another reads.
func TestRecipes(t *testing.T) {
	url := testenv.Redis(t)
	a, b := open(t, redis.Options{URL: url}), open(t, redis.Options{URL: url})
	if got, err := a.Recipe(t.Context(), "orders"); got != "" || err != nil {
		t.Fatalf("%q, %v; want nothing", got, err)
	}
	for _, want := range []string{`["json:id"]`, `["json:order.id"]`} {
		if err := a.SetRecipe(t.Context(), "orders", want); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Recipe(t.Context(), "orders"); got != want || err != nil {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
}

package inbox_test

import (
	"slices"
	"testing"
)

// TestBindings: what a group bound before and no longer names is told at every
// start, until it is unbound.
func TestBindings(t *testing.T) {
	each(t, func(e *env) {
		for _, c := range []struct{ bind, lost, unbound []string }{
			{bind: []string{"orders.#", "shop.#"}},
			{bind: []string{"shop.#", "bank.#"}, lost: []string{"orders.#"}}, // and the process dies
			{bind: []string{"bank.#"}, lost: []string{"orders.#", "shop.#"}, unbound: []string{"orders.#"}},
			{bind: []string{"bank.#"}, lost: []string{"shop.#"}, unbound: []string{"shop.#"}},
			{bind: []string{"bank.#"}},
		} {
			lost, err := e.Bind(e.Context(), "tickets", c.bind)
			e.must(err)
			if !slices.Equal(lost, c.lost) {
				e.Errorf("%v: lost %v, want %v", c.bind, lost, c.lost)
			}
			e.must(e.Unbound(e.Context(), "tickets", c.unbound))
		}
		lost, err := e.Bind(e.Context(), "mail", []string{"x.#"})
		e.must(err)
		if len(lost) > 0 {
			e.Errorf("another group lost %v", lost)
		}
	})
}

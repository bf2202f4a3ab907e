package app

import (
	"context"
	"sync"

	"github.com/hookonce/hookonce/internal/admin"
)

// health knows how the parts are.
type health struct {
	mu    sync.Mutex
	parts []part
}

// part is one thing that is looked at. One that is needed makes the process
// unready when it fails; another one only shows.
type part struct {
	name   string
	needed func() bool
	check  func(ctx context.Context) error
}

func (h *health) add(name string, needed bool, check func(ctx context.Context) error) {
	h.addUnless(name, func() bool { return !needed }, check)
}

// addUnless adds a part that is needed unless something holds when it fails.
func (h *health) addUnless(name string, unless func() bool, check func(ctx context.Context) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.parts = append(h.parts, part{name, func() bool { return !unless() }, check})
}

// checks looks at every part. What is not needed is reported as well, and never
// as a reason to be unready.
func (h *health) checks(ctx context.Context) []admin.Check {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	h.mu.Lock()
	parts := h.parts
	h.mu.Unlock()
	out := make([]admin.Check, len(parts))
	var wg sync.WaitGroup
	for i, p := range parts {
		wg.Go(func() {
			out[i] = admin.Check{Name: p.name, OK: true}
			if err := p.check(ctx); err != nil {
				out[i].OK, out[i].Detail = !p.needed(), "degraded: "+err.Error()
			}
		})
	}
	wg.Wait()
	return out
}

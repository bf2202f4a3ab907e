package app

import (
	"testing"
	"time"
)

func TestProgressTellsWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		n, total int
		want     string
	}{
		{500, 2000, "500 of 2000 done, 50/s, 30s left"},
		{2000, 2000, "2000 of 2000 done, 200/s, 0s left"},
		{500, 0, "500 done, 50/s"},
		{30, 20, "30 done, 3/s"}, // more died meanwhile
		{0, 10, "0 done, 0/s"},
	} {
		p := &progress{n: c.n, total: c.total}
		if got := p.text(10 * time.Second); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.n, c.total, got, c.want)
		}
	}
}

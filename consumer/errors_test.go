package consumer

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestDecideIsTheOnePlaceForOutcomes(t *testing.T) {
	p := RetryPolicy{MaxAttempts: 3, First: time.Second, Max: 10 * time.Second}
	no := errors.New("no")
	for name, c := range map[string]struct {
		err     error
		attempt int
		want    fate
	}{
		"first failure":           {no, 1, fate{delay: time.Second}},
		"second failure":          {no, 2, fate{delay: 2 * time.Second}},
		"last attempt":            {no, 3, fate{dead: true}},
		"permanent":               {Permanent(no), 1, fate{dead: true, permanent: true}},
		"permanent, wrapped":      {fmt.Errorf("step: %w", Permanent(no)), 1, fate{dead: true, permanent: true}},
		"retry after":             {RetryAfter(no, time.Hour), 1, fate{delay: time.Hour}},
		"retry after, too soon":   {RetryAfter(no, time.Millisecond), 2, fate{delay: 2 * time.Second}},
		"retry after, last":       {RetryAfter(no, time.Hour), 3, fate{dead: true}},
		"permanent retry after":   {Permanent(RetryAfter(no, time.Hour)), 1, fate{dead: true, permanent: true}},
		"more attempts than ever": {no, 9, fate{dead: true}},
	} {
		if got := p.decide(c.err, c.attempt, p.ceiling(c.attempt)); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	if Permanent(nil) != nil || RetryAfter(nil, time.Hour) != nil {
		t.Error("no error became one")
	}
}

func TestCeilingDoublesUpToMax(t *testing.T) {
	p := RetryPolicy{First: time.Second, Max: 10 * time.Second}
	want := []time.Duration{1, 2, 4, 8, 10, 10, 10}
	for i, w := range want {
		if got := p.ceiling(i + 1); got != w*time.Second {
			t.Errorf("behind attempt %d: %s, want %s", i+1, got, w*time.Second)
		}
	}
	if got := p.ceiling(1 << 20); got != p.Max {
		t.Errorf("overflow: %s", got)
	}
}

package app

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestStagesStopInOrderEachBehindTheOneBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		var order []string
		slow := func(name string, d time.Duration) stage {
			return stage{name, func(ctx context.Context) error {
				<-ctx.Done()
				<-time.After(d)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, name)
				return ctx.Err()
			}}
		}
		time.AfterFunc(time.Second, cancel)
		if err := runStages(ctx, slow("intake", 3*time.Second), slow("relay", time.Second), slow("store", 0)); err != nil {
			t.Fatal(err)
		}
		if want := []string{"intake", "relay", "store"}; !slices.Equal(order, want) {
			t.Fatalf("stopped in order %v, want %v", order, want)
		}
	})
}

func TestAStageThatEndsStopsTheOthersAndItsErrorIsTold(t *testing.T) {
	boom := errors.New("boom")
	stopped := false
	err := runStages(t.Context(),
		stage{"intake", func(ctx context.Context) error { <-ctx.Done(); stopped = true; return nil }},
		stage{"relay", func(context.Context) error { return boom }},
	)
	if !errors.Is(err, boom) || !stopped {
		t.Fatalf("err %v, intake stopped %v", err, stopped)
	}
}

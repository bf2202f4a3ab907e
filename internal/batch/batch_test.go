package batch_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce/internal/batch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slow carries out batches that take a second each and notes their sizes.
type slow struct {
	mu    sync.Mutex
	sizes []int
}

func (s *slow) do(ctx context.Context, items []int) ([]string, error) {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(items))
	s.mu.Unlock()
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	out := make([]string, len(items))
	for i, v := range items {
		out[i] = fmt.Sprint(v)
	}
	return out, nil
}

func TestIdleItemWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		b := batch.New(batch.Options{}, s.do)
		defer b.Close()
		start := time.Now()
		got, err := b.Do(t.Context(), 7)
		if got != "7" || err != nil || time.Since(start) != time.Second {
			t.Fatalf("Do = %q, %v after %v", got, err, time.Since(start))
		}
	})
}

func TestWaitingItemsShareTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		b := batch.New(batch.Options{MaxItems: 4}, s.do)
		defer b.Close()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				if got, err := b.Do(t.Context(), i); got != fmt.Sprint(i) || err != nil {
					t.Errorf("Do(%d) = %q, %v", i, got, err)
				}
			})
			synctest.Wait() // the first one is under way before the others come
		}
		wg.Wait()
		if fmt.Sprint(s.sizes) != "[1 4 4 1]" {
			t.Errorf("batches of %v, want [1 4 4 1]", s.sizes)
		}
	})
}

func TestWorkersRunSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		b := batch.New(batch.Options{MaxItems: 1, Workers: 3}, s.do)
		defer b.Close()
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() { _, _ = b.Do(t.Context(), i) })
		}
		wg.Wait()
		if d := time.Since(start); d != 2*time.Second {
			t.Errorf("6 calls by 3 workers took %v, want 2s", d)
		}
	})
}

type block int

func (s block) Size() int { return int(s) }

func TestBytesEndABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		b := batch.New(batch.Options{MaxBytes: 100}, func(_ context.Context, items []block) ([]int, error) {
			sizes = append(sizes, len(items))
			<-time.After(time.Second)
			return make([]int, len(items)), nil
		})
		defer b.Close()
		var wg sync.WaitGroup
		for range 7 {
			wg.Go(func() { _, _ = b.Do(t.Context(), 50) })
			synctest.Wait()
		}
		wg.Wait()
		if fmt.Sprint(sizes) != "[1 2 2 2]" {
			t.Errorf("batches of %v, want [1 2 2 2]", sizes)
		}
	})
}

func TestCallerMayLeaveAndTheItemIsCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		b := batch.New(batch.Options{}, s.do)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := b.Do(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v, want deadline exceeded", err)
		}
		b.Close()
		if len(s.sizes) != 1 {
			t.Errorf("%d calls, want 1", len(s.sizes))
		}
		if _, err := b.Do(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended context: err = %v", err)
		}
	})
}

func TestCallHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := batch.New(batch.Options{}, func(ctx context.Context, _ []int) ([]int, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		defer b.Close()
		start := time.Now()
		_, err := b.Do(t.Context(), 1)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != batch.DefaultTimeout {
			t.Errorf("err = %v after %v", err, time.Since(start))
		}
	})
}

func TestErrorAndShortAnswerReachEveryCaller(t *testing.T) {
	broken := errors.New("broken")
	for name, fn := range map[string]func(context.Context, []int) ([]int, error){
		"error":        func(context.Context, []int) ([]int, error) { return nil, broken },
		"short answer": func(context.Context, []int) ([]int, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := batch.New(batch.Options{}, fn)
			defer b.Close()
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					if _, err := b.Do(t.Context(), i); err == nil {
						t.Error("no error")
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestCloseRefusesAndWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		b := batch.New(batch.Options{MaxItems: 1}, s.do)
		var answered, refused int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 3 {
			wg.Go(func() {
				_, err := b.Do(t.Context(), i)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					answered++
				case errors.Is(err, batch.ErrClosed):
					refused++
				}
			})
		}
		synctest.Wait()
		b.Close()
		b.Close()
		wg.Wait()
		if answered != 1 || refused != 2 {
			t.Errorf("answered %d, refused %d; want 1 and 2", answered, refused)
		}
	})
}

func BenchmarkDo(b *testing.B) {
	bt := batch.New(batch.Options{}, func(_ context.Context, items []int) ([]int, error) { return items, nil })
	defer bt.Close()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, _ = bt.Do(b.Context(), 1)
		}
	})
}

// TestItemsOfCallersThatLeftAreDropped: while the store hangs, what nobody
// waits for any more must not pile up in front of those who do.
func TestItemsOfCallersThatLeftAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		b := batch.New(batch.Options{}, s.do)
		defer b.Close()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = b.Do(t.Context(), 0) })
		synctest.Wait()
		for i := range 5 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := b.Do(ctx, i); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		}
		<-time.After(500 * time.Millisecond)
		if got, err := b.Do(t.Context(), 7); got != "7" || err != nil {
			t.Errorf("Do = %q, %v", got, err)
		}
		wg.Wait()
		if fmt.Sprint(s.sizes) != "[1 1]" {
			t.Errorf("batches of %v, want [1 1]", s.sizes)
		}
	})
}

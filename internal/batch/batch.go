// Package batch makes concurrent callers share one operation (group commit).
//
// A worker takes the first waiting item, and with it whatever else waits at
// that moment, and carries all of them out in one call. So an idle request
// waits for nobody, and under load the batches grow by themselves: while one is
// carried out, the next one gathers.
//
//	b := batch.New(batch.Options{MaxItems: 256}, func(ctx context.Context, items []int) ([]string, error) {
//		return store(ctx, items) // one answer an item, in their order
//	})
//	defer b.Close()
//	answer, err := b.Do(ctx, 42)
package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of [Options].
const (
	DefaultMaxItems = 256
	DefaultMaxBytes = 8 << 20
	DefaultTimeout  = 5 * time.Second
)

// ErrClosed says that the item was not carried out: the batcher is closed.
var ErrClosed = errors.New("batch: closed")

// Options tune a batcher; the zero value is usable.
type Options struct {
	// MaxItems is how many items share one call at most; 0 means [DefaultMaxItems].
	MaxItems int
	// MaxBytes ends a batch early: no further item is taken once the sizes of
	// those taken reach it. It matters for items that are a [Sizer] only;
	// 0 means [DefaultMaxBytes].
	MaxBytes int
	// Workers is how many calls may run at the same time; 0 means 1.
	Workers int
	// Timeout bounds one call; 0 means [DefaultTimeout].
	Timeout time.Duration
}

// Sizer is an item that knows its weight in bytes.
type Sizer interface{ Size() int }

// Batcher carries out items of type Q in batches; each has an answer of type R.
type Batcher[Q, R any] struct {
	o       Options
	fn      func(context.Context, []Q) ([]R, error)
	spare   sync.Pool     // of *call
	wake    chan struct{} // one token for each worker that is called
	closing chan struct{}
	workers sync.WaitGroup

	mu     sync.Mutex
	queue  []*call[Q, R]
	idle   int // workers that wait and were not called
	closed bool
}

// call is one item on its way.
type call[Q, R any] struct {
	item  Q
	reply chan answer[R] // has room for the one answer
	state atomic.Int32
}

// The states of a call: whoever changes it from queued decides.
const (
	queued int32 = iota
	taken        // a worker carries it out
	left         // its caller is gone: it is dropped
)

type answer[R any] struct {
	value R
	err   error
}

// New starts a batcher, to be ended with Close. fn gets a context of its own
// with a deadline, never a caller's, and returns one answer an item in their
// order, or an error that every caller of the batch gets. It does not keep the
// slice.
func New[Q, R any](o Options, fn func(ctx context.Context, items []Q) ([]R, error)) *Batcher[Q, R] {
	o.MaxItems = orDefault(o.MaxItems, DefaultMaxItems)
	o.MaxBytes = orDefault(o.MaxBytes, DefaultMaxBytes)
	o.Workers = orDefault(o.Workers, 1)
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	b := &Batcher[Q, R]{o: o, fn: fn, wake: make(chan struct{}, o.Workers), closing: make(chan struct{})}
	b.spare.New = func() any { return &call[Q, R]{reply: make(chan answer[R], 1)} }
	for range o.Workers {
		b.workers.Go(b.work)
	}
	return b
}

func orDefault(v, d int) int {
	if v <= 0 {
		return d
	}
	return v
}

// Do carries out one item, together with those that wait at the same moment.
// When ctx ends first it returns ctx.Err(), and an item that is under way by
// then is carried out all the same. After Close it returns [ErrClosed].
func (b *Batcher[Q, R]) Do(ctx context.Context, item Q) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	c := b.spare.Get().(*call[Q, R])
	c.item = item
	c.state.Store(queued)
	if !b.add(c) {
		return none, ErrClosed
	}
	select {
	case a := <-c.reply:
		var free Q
		c.item = free
		b.spare.Put(c) // nobody else has it any more
		return a.value, a.err
	case <-ctx.Done():
		c.state.CompareAndSwap(queued, left)
		return none, ctx.Err()
	}
}

// add queues a call and wakes a worker if one is idle.
func (b *Batcher[Q, R]) add(c *call[Q, R]) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.queue = append(b.queue, c)
	if b.idle > 0 {
		b.idle--
		b.wake <- struct{}{} // has room: there are no more tokens than workers
	}
	return true
}

// Close refuses further items, those that wait too, and waits for the calls
// that run. It may be called more than once.
func (b *Batcher[Q, R]) Close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.closing)
	}
	waiting := b.queue
	b.queue = nil
	b.mu.Unlock()
	for _, c := range waiting {
		c.reply <- answer[R]{err: ErrClosed}
	}
	b.workers.Wait()
}

func (b *Batcher[Q, R]) work() {
	calls := make([]*call[Q, R], 0, b.o.MaxItems)
	items := make([]Q, 0, b.o.MaxItems)
	for {
		// Requests that are ready to run queue their items first: fewer, larger
		// batches. When there are none, this returns at once.
		runtime.Gosched()
		calls = b.take(calls)
		if len(calls) == 0 {
			select {
			case <-b.closing:
				return
			case <-b.wake:
			}
			continue
		}
		for _, c := range calls {
			items = append(items, c.item)
		}
		b.carryOut(items, calls)
		clear(items) // the answered items are not kept alive by an idle worker
		clear(calls)
		items, calls = items[:0], calls[:0]
	}
}

// take moves what waits to calls, within the bounds; when nothing does, the
// worker counts as idle.
func (b *Batcher[Q, R]) take(calls []*call[Q, R]) []*call[Q, R] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, bytes := 0, 0
	for n < len(b.queue) && len(calls) < b.o.MaxItems && (len(calls) == 0 || bytes < b.o.MaxBytes) {
		c := b.queue[n]
		n++
		if c.state.CompareAndSwap(queued, taken) {
			calls = append(calls, c)
			bytes += size(c.item)
		}
	}
	rest := copy(b.queue, b.queue[n:])
	clear(b.queue[rest:])
	b.queue = b.queue[:rest]
	if len(calls) == 0 {
		b.idle++
	}
	return calls
}

func size(item any) int {
	if s, ok := item.(Sizer); ok {
		return s.Size()
	}
	return 0
}

func (b *Batcher[Q, R]) carryOut(items []Q, calls []*call[Q, R]) {
	ctx, cancel := context.WithTimeout(context.Background(), b.o.Timeout)
	defer cancel()
	values, err := b.fn(ctx, items)
	if err == nil && len(values) != len(items) {
		err = fmt.Errorf("batch: %d answers to %d items", len(values), len(items))
	}
	for i, c := range calls {
		a := answer[R]{err: err}
		if err == nil {
			a.value = values[i]
		}
		c.reply <- a // has room: each call is answered once
	}
}

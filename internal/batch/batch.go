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
	"sync"
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
	calls   chan call[Q, R]
	closing chan struct{}
	once    sync.Once
	workers sync.WaitGroup
}

type call[Q, R any] struct {
	item  Q
	reply chan answer[R]
}

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
	b := &Batcher[Q, R]{o: o, fn: fn, calls: make(chan call[Q, R]), closing: make(chan struct{})}
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
// When ctx ends first it returns ctx.Err(), and the item may be carried out all
// the same. After Close it returns [ErrClosed].
func (b *Batcher[Q, R]) Do(ctx context.Context, item Q) (R, error) {
	c := call[Q, R]{item: item, reply: make(chan answer[R], 1)}
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	select {
	case b.calls <- c:
	case <-b.closing:
		return none, ErrClosed
	case <-ctx.Done():
		return none, ctx.Err()
	}
	select {
	case a := <-c.reply:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Close refuses further items and waits for the calls that run. It may be
// called more than once.
func (b *Batcher[Q, R]) Close() {
	b.once.Do(func() { close(b.closing) })
	b.workers.Wait()
}

func (b *Batcher[Q, R]) work() {
	items := make([]Q, 0, b.o.MaxItems)
	replies := make([]chan answer[R], 0, b.o.MaxItems)
	for {
		select {
		case <-b.closing:
			return
		case first := <-b.calls:
			items, replies = b.gather(append(items, first.item), append(replies, first.reply))
		}
		b.carryOut(items, replies)
		clear(items) // the answered items are not kept alive by an idle worker
		clear(replies)
		items, replies = items[:0], replies[:0]
	}
}

// gather adds what waits now to the first item, within the bounds.
func (b *Batcher[Q, R]) gather(items []Q, replies []chan answer[R]) ([]Q, []chan answer[R]) {
	bytes := size(items[0])
	for len(items) < b.o.MaxItems && bytes < b.o.MaxBytes {
		select {
		case c := <-b.calls:
			items, replies = append(items, c.item), append(replies, c.reply)
			bytes += size(c.item)
		default:
			return items, replies
		}
	}
	return items, replies
}

func size(item any) int {
	if s, ok := item.(Sizer); ok {
		return s.Size()
	}
	return 0
}

func (b *Batcher[Q, R]) carryOut(items []Q, replies []chan answer[R]) {
	ctx, cancel := context.WithTimeout(context.Background(), b.o.Timeout)
	defer cancel()
	values, err := b.fn(ctx, items)
	if err == nil && len(values) != len(items) {
		err = fmt.Errorf("batch: %d answers to %d items", len(values), len(items))
	}
	for i, reply := range replies {
		a := answer[R]{err: err}
		if err == nil {
			a.value = values[i]
		}
		reply <- a // has room: each reply is answered once
	}
}

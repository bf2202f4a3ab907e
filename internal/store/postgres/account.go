package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce"
)

// Entry ids begin with the instance's epoch; the rest counts.
const epochShift = 40

// instance is this process as the database knows it.
type instance struct {
	id   int64
	last *atomic.Int64 // entry id that was given last
}

func (i instance) nextID() int64 { return i.last.Add(1) }

func (i instance) entry(id int64) hookonce.EntryID { return hookonce.EntryID{Lo: uint64(id)} }

// books count what waits in the outboxes. The counts of this instance are kept
// here, and differences are written to its row now and then: a row that each
// batch changed would make them wait for each other, and leave dead versions
// that all of them have to read as long as some long transaction (a backup)
// holds them.
//
// The embedded lock is held for reading by whatever changes the outbox, until
// the books say so too, and for writing to count anew.
type books struct {
	sync.RWMutex

	mu       sync.Mutex
	me       instance
	leased   time.Time // when the lease was last renewed
	known    size      // of this instance, as its row has it
	unsaved  size      // changes since
	others   size      // when last read
	reserved size      // batches on their way
	doubtful bool      // an answer was lost: count anew
	counted  time.Time // when that was last tried
	touching sync.Mutex
}

type size struct{ events, bytes int64 }

func (a size) plus(b size) size { return size{a.events + b.events, a.bytes + b.bytes} }

func (a size) minus(b size) size { return size{a.events - b.events, a.bytes - b.bytes} }

func (b *books) add(events, bytes int64) {
	b.mu.Lock()
	b.unsaved = b.unsaved.plus(size{events, bytes})
	b.mu.Unlock()
}

func (b *books) doubt() {
	b.mu.Lock()
	b.doubtful = true
	b.mu.Unlock()
}

// own is what this instance has, and total what all have. Call with mu held.
func (b *books) own() size { return b.known.plus(b.unsaved) }

func (b *books) total() size { return b.own().plus(b.others).plus(b.reserved) }

// A bound is near from this distance on, and from a tenth of it.
const (
	nearEvents = 10_000
	nearBytes  = 64 << 20
)

// reserve counts a batch in before it is carried out, and says whether it is
// near the bound, where each item has to be admitted.
func (b *books) reserve(items []*claiming, o StoreOptions) (room size, near bool) {
	room.events = int64(len(items))
	for _, c := range items {
		room.bytes += int64(len(c.event))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved = b.reserved.plus(room)
	t := b.total()
	if t.events <= o.MaxEvents-max(nearEvents, o.MaxEvents/10) && t.bytes <= o.MaxBytes-max(nearBytes, o.MaxBytes/10) {
		return room, false
	}
	b.reserved = b.reserved.minus(room) // until it is known what is new
	return size{}, true
}

// release gives back what a batch had reserved.
func (b *books) release(room size) {
	b.mu.Lock()
	b.reserved = b.reserved.minus(room)
	b.mu.Unlock()
}

// admit looks at the bound for each item that is not answered yet, and refuses
// those that it leaves no room for. It returns what is now reserved.
func (s *Store) admit(ctx context.Context, items []*claiming) (size, error) {
	if err := s.touch(ctx); err != nil {
		return size{}, err
	}
	b := &s.books
	b.mu.Lock()
	defer b.mu.Unlock()
	room, seen := size{}, map[[16]byte]error{}
	for _, c := range items {
		if c.place == done {
			continue
		}
		if err, ok := seen[c.keys[0].digest]; ok { // a repeat needs no room
			if err != nil {
				c.fail(err)
			}
			continue
		}
		t, n := b.total().plus(room), int64(len(c.event))
		var err error
		if t.events+1 > s.o.MaxEvents || t.bytes+n > s.o.MaxBytes {
			err = fmt.Errorf("%w: %d events, %d bytes", hookonce.ErrOutboxFull, t.events, t.bytes)
			c.fail(err)
		} else {
			room = room.plus(size{1, n})
		}
		seen[c.keys[0].digest] = err
	}
	b.reserved = b.reserved.plus(room)
	return room, nil
}

// ready is this instance, with a lease that will not end within the operation.
func (s *Store) ready(ctx context.Context) (instance, error) {
	b := &s.books
	b.mu.Lock()
	me, age := b.me, time.Since(b.leased)
	b.mu.Unlock()
	if me.id != 0 && age < s.o.Lease/2 {
		return me, nil
	}
	if err := s.touch(ctx); err != nil {
		return me, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.me, nil
}

// touch renews the lease, saves the counts and reads those of the others. The
// first one registers the instance.
func (s *Store) touch(ctx context.Context) error {
	b := &s.books
	b.touching.Lock()
	defer b.touching.Unlock()
	b.mu.Lock()
	me := b.me
	b.mu.Unlock()
	if me.id != 0 {
		err := s.save(ctx, me)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		// Forgotten: it was silent for more than a day.
	}
	me, err := s.register(ctx)
	if err != nil {
		return err
	}
	return s.save(ctx, me)
}

func (s *Store) save(ctx context.Context, me instance) error {
	b := &s.books
	b.mu.Lock()
	unsaved := b.unsaved
	b.mu.Unlock()
	start := time.Now()
	var known, others size
	err := s.pool.QueryRow(ctx, s.sql.touch, me.id, s.o.Lease.Milliseconds(), unsaved.events, unsaved.bytes).
		Scan(&known.events, &known.bytes, &others.events, &others.bytes)
	if err != nil {
		if !errors.Is(err, pgx.ErrNoRows) && !isConflict(err) {
			b.doubt() // it may be saved
		}
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unsaved = b.unsaved.minus(unsaved)
	b.known, b.others, b.leased = known, others, start
	return nil
}

func (s *Store) register(ctx context.Context) (instance, error) {
	var id, epoch int64
	err := s.pool.QueryRow(ctx, s.sql.register, s.o.Instance, s.o.Lease.Milliseconds()).Scan(&id, &epoch)
	if err != nil {
		return instance{}, err
	}
	b := &s.books
	b.mu.Lock()
	defer b.mu.Unlock()
	last := &atomic.Int64{}
	last.Store(epoch << epochShift)
	if b.me.last != nil { // forgotten meanwhile: ids go on, for the relay knows the old ones
		last.Store(max(b.me.last.Load()+1<<20, last.Load()))
	}
	b.me = instance{id: id, last: last}
	b.doubtful = b.doubtful || epoch > 1 // its former process may not have saved all
	return b.me, nil
}

// recount counts anew what this instance has, if it is in doubt. Claims wait
// meanwhile, so it gives up early, and is tried again later.
func (s *Store) recount(ctx context.Context) error {
	b := &s.books
	b.mu.Lock()
	due := b.doubtful && (b.counted.IsZero() || time.Since(b.counted) >= recountEvery)
	me := b.me
	b.mu.Unlock()
	if !due || me.id == 0 {
		return nil
	}
	b.touching.Lock()
	defer b.touching.Unlock()
	b.Lock()
	defer b.Unlock()
	ctx, cancel := context.WithTimeout(ctx, recountTime)
	defer cancel()
	var known size
	err := s.pool.QueryRow(ctx, s.sql.recount, me.id).Scan(&known.events, &known.bytes)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.counted = time.Now()
		return err
	}
	b.known, b.unsaved, b.doubtful, b.counted = known, size{}, false, time.Time{}
	return nil
}

const (
	recountEvery = 30 * time.Second
	recountTime  = 500 * time.Millisecond
	keepEvery    = 500 * time.Millisecond
)

// nudge lets the keeper save the counts and renew the lease soon, when there is
// a reason to: duplicates alone write nothing.
func (s *Store) nudge() {
	b := &s.books
	b.mu.Lock()
	due := b.unsaved != size{} || time.Since(b.leased) > s.o.Lease/4
	b.mu.Unlock()
	if !due {
		return
	}
	select {
	case s.nudges <- struct{}{}:
	default:
	}
}

// keep saves the counts a while after they changed, and once more at the end.
func (s *Store) keep(ctx context.Context) {
	every := min(keepEvery, s.o.Lease/4)
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
			s.saveLast(context.WithoutCancel(ctx))
			return
		case <-s.nudges:
		}
		rest.Reset(every)
		select {
		case <-ctx.Done():
			s.saveLast(context.WithoutCancel(ctx))
			return
		case <-rest.C:
		}
		s.touchSoon(ctx)
	}
}

func (s *Store) touchSoon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := s.unknown(s.touch(ctx)); err != nil && ctx.Err() == nil {
		s.o.Logger.DebugContext(ctx, "outbox counts could not be saved yet", "err", err)
	}
}

// saveLast is for a closing store, which must not wait long.
func (s *Store) saveLast(ctx context.Context) {
	b := &s.books
	b.mu.Lock()
	nothing := b.me.id == 0 || b.unsaved == size{}
	b.mu.Unlock()
	if nothing {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := s.touch(ctx); err != nil {
		s.o.Logger.DebugContext(ctx, "outbox counts could not be saved", "err", err)
	}
}

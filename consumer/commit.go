package consumer

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
)

const (
	// sharedMost is how many works share a transaction at most.
	sharedMost = 256
	// slowLane is how long a transaction with functions lasts before another one
	// is begun beside it, slowStatements how long one of statements does. Below,
	// one at a time is best: two that touch the same rows in another order end in
	// a deadlock.
	slowLane       = 20 * time.Millisecond
	slowStatements = 500 * time.Millisecond
	// slowFunction is what a work's own function takes on average when fewer
	// should share a transaction. Quick ones are only cut off by inbox.Apply.
	slowFunction = 2 * time.Millisecond
	// secondLane is how many works have to wait for another transaction to be begun
	// beside a quick one: the client fills it while the database works.
	secondLane = 64
	// oneLane is how long after a deadlock none is begun beside another.
	oneLane = 10 * time.Second
	// growShared is how many good transactions in a row double the limit again.
	growShared = 8
)

// committer lets works that are ready at the same moment share a transaction
// (group commit). A work that finds none running begins one at once, so nothing
// waits when there is little to do; while one runs, the next one gathers.
//
// After a deadlock, a constraint that failed at the commit, or works that took
// long, fewer share one for a while.
type committer struct {
	ctx     context.Context // of the transactions
	apply   func(ctx context.Context, works []inbox.Work) ([]inbox.Result, error)
	lanes   int           // transactions at the same time, at most
	timeout time.Duration // of one

	mu      sync.Mutex
	queue   []*job
	running map[int]time.Time // from when on another transaction may be begun beside each
	shy     time.Time         // until when none may
	lane    int
	timer   *time.Timer // to look at the queue again; nil while it need not be
	limit   int
	good    int
}

// job is a work on its way.
type job struct {
	work  inbox.Work
	busy  *time.Duration // how long the work's own function took; nil without one
	reply chan reply     // has room for the one reply
}

type reply struct {
	result inbox.Result
	err    error // of the transaction
}

func newCommitter(ctx context.Context, in *inbox.Inbox, lanes int, timeout time.Duration) *committer {
	return &committer{ctx: ctx, apply: in.Apply, lanes: lanes, timeout: timeout, limit: sharedMost, running: map[int]time.Time{}}
}

// do carries out a work. The error concerns the transaction, the result's the
// work. busy, where the work has a function, is how long that took.
func (c *committer) do(w inbox.Work, busy *time.Duration) (inbox.Result, error) {
	j := &job{work: w, busy: busy, reply: make(chan reply, 1)}
	c.mu.Lock()
	c.queue = append(c.queue, j)
	c.start()
	c.mu.Unlock()
	r := <-j.reply
	return r.result, r.err
}

// start begins a transaction for what is queued, if one may begin now.
func (c *committer) start() {
	if len(c.queue) == 0 || len(c.running) >= c.lanes {
		return
	}
	shy := time.Now().Before(c.shy)
	if len(c.running) == 1 && len(c.queue) >= secondLane && !shy {
		c.begin()
		return
	}
	if len(c.running) > 0 && (c.limit > 1 || shy) {
		// As long as transactions are quick, the next one waits for this one.
		from := c.shy
		for _, at := range c.running {
			if at.After(from) {
				from = at
			}
		}
		if wait := time.Until(from); wait > 0 {
			c.again(wait)
			return
		}
	}
	c.begin()
}

func (c *committer) begin() {
	c.lane++
	c.running[c.lane] = time.Now().Add(slowLane)
	go c.work(c.lane)
}

// again calls start after a while.
func (c *committer) again(after time.Duration) {
	if c.timer != nil {
		return
	}
	c.timer = time.AfterFunc(after, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.timer = nil
		c.start()
	})
}

// work carries out what is queued until nothing is.
func (c *committer) work(lane int) {
	for {
		runtime.Gosched() // whoever is ready queues its work first: fewer, larger transactions
		c.mu.Lock()
		n := min(len(c.queue), c.limit)
		if n == 0 {
			delete(c.running, lane)
			c.mu.Unlock()
			return
		}
		jobs := append([]*job(nil), c.queue[:n]...)
		rest := copy(c.queue, c.queue[n:])
		clear(c.queue[rest:])
		c.queue = c.queue[:rest]
		c.running[lane] = time.Now().Add(patience(jobs))
		c.start() // with a limit of one, another may begin beside it
		c.mu.Unlock()
		c.together(jobs)
	}
}

// patience is how long the next transaction waits for this one.
func patience(jobs []*job) time.Duration {
	for _, j := range jobs {
		if j.work.Tx != nil {
			return slowLane
		}
	}
	return slowStatements
}

// together lets jobs share a transaction.
func (c *committer) together(jobs []*job) {
	works := make([]inbox.Work, len(jobs))
	for i, j := range jobs {
		works[i] = j.work
	}
	results, err := c.carryOut(works)
	switch {
	case err == nil:
		c.measure(jobs, results)
		c.answer(jobs, results)
	case len(jobs) > 1 && (errors.Is(err, inbox.ErrApart) || errors.Is(err, context.DeadlineExceeded)):
		c.shrink()
		for _, j := range jobs {
			results, err := c.carryOut([]inbox.Work{j.work})
			if err != nil {
				j.reply <- reply{err: err}
				continue
			}
			j.reply <- reply{result: results[0]}
		}
	default:
		for _, j := range jobs {
			j.reply <- reply{err: err}
		}
	}
}

func (c *committer) carryOut(works []inbox.Work) ([]inbox.Result, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.timeout)
	defer cancel()
	return c.apply(ctx, works)
}

// answer replies, and puts those whose turn did not come to the front again.
func (c *committer) answer(jobs []*job, results []inbox.Result) {
	var later []*job
	for i, j := range jobs {
		if results[i].Later {
			later = append(later, j)
			continue
		}
		j.reply <- reply{result: results[i]}
	}
	if len(later) > 0 {
		c.mu.Lock()
		c.queue = append(later, c.queue...)
		c.mu.Unlock()
	}
}

// measure sets how many may share the next transactions, by how long the works'
// own functions took: one that takes long is to hold up no other. The time of
// the commit does not count: the slower the disk, the more should share it.
func (c *committer) measure(jobs []*job, results []inbox.Result) {
	var took time.Duration
	done := 0
	for i, j := range jobs {
		if !results[i].Later {
			done++
		}
		if j.busy != nil {
			took += *j.busy
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case took > slowLane && took > time.Duration(done)*slowFunction:
		c.limit, c.good = max(1, min(done, c.limit)/2), 0
	case c.limit < sharedMost:
		if c.good++; c.good >= growShared {
			c.limit, c.good = min(2*c.limit, sharedMost), 0
		}
	}
}

func (c *committer) shrink() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.good = max(1, c.limit/4), 0
	c.shy = time.Now().Add(oneLane)
}

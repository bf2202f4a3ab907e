package inbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// Work is a step of a held event, to be carried out and recorded.
type Work struct {
	Lease Lease
	// Step is what gets recorded: name, detail, and the state, done when empty.
	// Without a name nothing is.
	Step Step
	// Last makes the event done in the same transaction.
	Last bool
	// Tx writes in the transaction that records the step. It may be called again
	// when that transaction, which it may share, was rolled back for another's
	// failure. It must neither commit nor roll back.
	Tx func(tx *sql.Tx) error
	// Statements are the same as data. Not nil, even when empty, for a step that
	// writes so.
	Statements []Statement
	// Once and Latest, when not nil, decide whether the step is for this event.
	// An effect outside gives them with both its records, started and done.
	Once   *Once
	Latest *Latest
}

// inside says that the step's effect is in the database.
func (w Work) inside() bool { return w.Tx != nil || w.Statements != nil }

// Once says that a step is done once for a value in its group.
type Once struct {
	Value string
	// Was are the step's former names.
	Was []string
}

// Latest says that a step applies a version of an entity unless a newer one
// was applied before.
type Latest struct {
	Entity  string
	Version Version
	Was     []string
}

// Statement is one SQL statement with its arguments.
type Statement struct {
	Text string
	Args []any
}

// Result is what became of a Work.
type Result struct {
	// Err is the work's own failure, ErrLeaseLost, or a *HeldError; nothing of
	// it was written.
	Err error
	// State and Detail are what was recorded: skipped and stale, too, end the step.
	State  StepState
	Detail string
	// Until, when set, says that another event is at this value or entity: try
	// again then. Nothing was written.
	Until time.Time
	// Later says that the transaction had lasted long enough before this work's
	// turn came. Nothing was written.
	Later bool
}

// HeldError says that the value of a Once belongs to an event whose effect may
// have happened, which only a person can tell.
type HeldError struct {
	Value string
	Step  string
	Key   hookonce.Key
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("once_per value %q belongs to %s, whose step %s has an unknown end: decide about that event first",
		cut(clean(e.Value), 100), e.Key.Escaped(), e.Step)
}

// ErrApart says that works cannot share a transaction at this moment: nothing
// was written, and they are to be tried one by one.
var ErrApart = errors.New("to be tried one by one")

// errSavepoints says that one of several works failed, and not which.
var errSavepoints = errors.New("one of several works failed")

// longest is how long one transaction takes on further works.
const longest = 25 * time.Millisecond

// Apply carries out and records works of one group, each of another event, in
// one transaction that they share. A work that fails takes no other with it:
// the transaction is done again without it, with a savepoint for each.
//
// The lease is checked at the end, in the transaction: what a work has written
// under a lost lease is rolled back. An error concerns all; nothing was
// written, unless the answer to the commit was lost, which the next Begin
// tells.
func (b *Inbox) Apply(ctx context.Context, works []Work) ([]Result, error) {
	a := &applying{b: b, works: works, todo: make([]int, len(works))}
	for i := range works {
		a.todo[i] = i
	}
	for tries := 0; ; {
		a.results = make([]Result, len(works))
		for i, err := range a.failed {
			a.results[i].Err = err
		}
		if len(a.todo) == 0 {
			return a.results, nil
		}
		err := a.transaction(ctx)
		var one *workError
		switch {
		case err == nil:
			return a.results, nil
		case errors.Is(err, errSavepoints):
			a.apart = true
		case errors.As(err, &one):
			a.drop(one)
		case deadlocked(err) && len(a.todo) > 1, atCommit(err) && len(a.todo) > 1:
			return nil, fmt.Errorf("%w: %w", ErrApart, err)
		case deadlocked(err) && tries < 3:
			tries++
		case atCommit(err), deadlocked(err):
			a.drop(&workError{a.todo[0], err})
		default:
			return nil, err
		}
	}
}

// applying is one Apply under way.
type applying struct {
	b       *Inbox
	works   []Work
	results []Result
	todo    []int         // the works that are left
	failed  map[int]error // the others
	apart   bool          // with a savepoint for each

	conn  *sql.Conn
	tx    *sql.Tx
	began time.Time
	// pending are works whose statements are to be sent together.
	pending []int
	// recorded are the works that have come to their records.
	recorded []int
}

// workError is the failure of one work that spoils the transaction.
type workError struct {
	i   int
	err error
}

func (e *workError) Error() string { return e.err.Error() }
func (e *workError) Unwrap() error { return e.err }

// drop leaves a work out of further tries.
func (a *applying) drop(e *workError) {
	if a.failed == nil {
		a.failed = make(map[int]error)
	}
	a.failed[e.i] = e.err
	rest := a.todo[:0]
	for _, i := range a.todo {
		if i != e.i {
			rest = append(rest, i)
		}
	}
	a.todo = rest
	if !errors.Is(e.err, ErrLeaseLost) {
		a.apart = len(rest) > 1
	}
}

// commitError is a commit that the database refused.
type commitError struct{ err error }

func (e *commitError) Error() string { return "inbox: commit: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

// atCommit says that a deferred constraint failed: the transaction is rolled
// back, and nothing tells for whose fault.
func atCommit(err error) bool {
	var c *commitError
	return errors.As(err, &c) && constraint(err)
}

func (a *applying) transaction(ctx context.Context) (err error) {
	a.pending, a.recorded, a.began = a.pending[:0], a.recorded[:0], time.Now()
	if a.conn, err = a.b.db.Conn(ctx); err != nil {
		return fmt.Errorf("inbox: begin: %w", err)
	}
	defer func() { _ = a.conn.Close() }() // back to the pool
	if a.tx, err = a.conn.BeginTx(ctx, &sql.TxOptions{Isolation: a.b.d.isolation}); err != nil {
		return fmt.Errorf("inbox: begin: %w", err)
	}
	defer func() { _ = a.tx.Rollback() }() // a no-op after the commit
	for n, i := range a.todo {
		if n > 0 && a.works[i].Tx != nil && time.Since(a.began) > longest {
			a.results[i].Later = true
			continue
		}
		if err := a.one(ctx, i); err != nil {
			return err
		}
	}
	if err := a.flush(ctx); err != nil {
		return err
	}
	if err := a.record(ctx); err != nil {
		return err
	}
	if err := a.tx.Commit(); err != nil {
		return &commitError{err}
	}
	return nil
}

// one carries out a work, or puts its statements where the others' are.
func (a *applying) one(ctx context.Context, i int) error {
	w := a.works[i]
	if a.apart && w.inside() {
		return a.within(ctx, i)
	}
	ok, err := a.gates(ctx, i)
	if err != nil {
		return a.blame(i, err)
	}
	if !ok {
		return nil
	}
	if w.Tx == nil {
		if a.sameEntity(w) {
			// Statements that travel together are sorted, and versions are not to be.
			if err := a.flush(ctx); err != nil {
				return err
			}
		}
		a.pending = append(a.pending, i)
		return nil
	}
	if err := a.flush(ctx); err != nil { // what came first is written first
		return err
	}
	if err := w.Tx(a.tx); err != nil {
		return a.blame(i, err)
	}
	a.recorded = append(a.recorded, i)
	return nil
}

// sameEntity says that a pending work is about the same entity as w.
func (a *applying) sameEntity(w Work) bool {
	return w.Latest != nil && slices.ContainsFunc(a.pending, func(i int) bool {
		other := a.works[i]
		return other.Latest != nil && other.Latest.Entity == w.Latest.Entity && other.Step.Name == w.Step.Name
	})
}

// blame makes an error one work's own, unless the database chose it at random.
func (a *applying) blame(i int, err error) error {
	if deadlocked(err) {
		return err
	}
	return &workError{i, err}
}

// within carries out a work within a savepoint: its failure is its own.
func (a *applying) within(ctx context.Context, i int) error {
	w := a.works[i]
	if _, err := a.tx.ExecContext(ctx, "SAVEPOINT hookonce_work"); err != nil {
		return fmt.Errorf("inbox: savepoint: %w", err)
	}
	ok, err := a.gates(ctx, i)
	if err == nil && ok {
		if w.Tx != nil {
			err = w.Tx(a.tx)
		} else {
			_, err = a.b.o.Pipeline(ctx, a.conn, a.tx, w.Statements)
		}
	}
	if err == nil {
		if _, err := a.tx.ExecContext(ctx, "RELEASE SAVEPOINT hookonce_work"); err != nil {
			return &workError{i, err}
		}
		if ok {
			a.recorded = append(a.recorded, i)
		}
		return nil
	}
	if deadlocked(err) {
		return err
	}
	if _, back := a.tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT hookonce_work"); back != nil {
		return &workError{i, err} // it took the connection with it
	}
	a.results[i] = Result{Err: err}
	return nil
}

// flush sends the statements that are pending.
func (a *applying) flush(ctx context.Context) error {
	if len(a.pending) == 0 {
		return nil
	}
	all, of := a.inOrder()
	if len(all) > 0 {
		if n, err := a.b.o.Pipeline(ctx, a.conn, a.tx, all); err != nil {
			switch {
			case n < 0 || n >= len(of):
				return fmt.Errorf("inbox: statements: %w", err)
			case len(a.pending) > 1 && !deadlocked(err):
				return errSavepoints // a statement that cannot be parsed is told by the first one
			}
			return a.blame(of[n], err)
		}
	}
	a.recorded = append(a.recorded, a.pending...)
	a.pending = a.pending[:0]
	return nil
}

// inOrder is the pending works' statements, and whose each is: all first ones,
// then all second ones, and so on, each time in the order of their arguments.
// Two transactions that change the same rows, the stock of one product, then
// come to them in the same order, and end in no deadlock.
func (a *applying) inOrder() (all []Statement, of []int) {
	type placed struct {
		s    Statement
		i    int
		args string
	}
	var round []placed
	for k := 0; ; k++ {
		round = round[:0]
		for _, i := range a.pending {
			if w := a.works[i]; k < len(w.Statements) {
				p := placed{s: w.Statements[k], i: i}
				if len(a.pending) > 1 {
					p.args = argsText(p.s.Args)
				}
				round = append(round, p)
			}
		}
		if len(round) == 0 {
			return all, of
		}
		slices.SortStableFunc(round, func(x, y placed) int {
			return cmp.Or(strings.Compare(x.s.Text, y.s.Text), strings.Compare(x.args, y.args))
		})
		for _, p := range round {
			all, of = append(all, p.s), append(of, p.i)
		}
	}
}

// argsText is something to sort arguments by; any order will do.
func argsText(args []any) string {
	var b []byte
	for _, arg := range args {
		switch v := arg.(type) {
		case string:
			b = append(b, v...)
		case int:
			b = strconv.AppendInt(b, int64(v), 10)
		case int64:
			b = strconv.AppendInt(b, v, 10)
		default:
			b = fmt.Append(b, v)
		}
		b = append(b, 0)
	}
	return string(b)
}

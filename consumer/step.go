package consumer

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
)

// Step is one named part of what a group does with an event. It is recorded
// under its name: once done, no retry or replay runs it again.
//
// What it does is exactly one of Tx, Statements and Do.
type Step struct {
	// Name is unique in its group and stays the same over releases.
	Name string
	// Was lists former names: a step recorded under one of them counts as done.
	Was []string
	// Timeout bounds one attempt. 60s.
	Timeout time.Duration

	// Tx writes to the inbox's database. Its writes commit together with the
	// step's record, or not at all. Events that are ready at the same moment
	// share a transaction, see OwnTx.
	Tx func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error
	// Statements is a Tx that only writes: the statements of all events that
	// share a transaction travel together, which is several times as fast.
	Statements func(e hookonce.Event) ([]Statement, error)
	// Do has an effect outside the database (e-mail, HTTP). It is recorded as
	// started, and that is committed, before it is called; as done after.
	//
	// An error means that the effect did not happen, and it is tried again. One
	// marked by [Unknown] means that it may have, and so do a timeout of the
	// step, a panic, and a process that dies in between: see OnUnknown.
	Do func(ctx context.Context, t Try) error

	// OwnTx gives each event's Tx a transaction of its own: for one that takes
	// long, or sets something for its whole transaction.
	OwnTx bool
	// OnUnknown says what happens to a Do that was started and has no end.
	// Rerun.
	OnUnknown OnUnknown
	// RerunWithin is how long after its first start a Do with an unknown end is
	// tried again under Rerun; later it is parked. Set it shorter than the
	// target remembers the key. 20h.
	RerunWithin time.Duration
	// When, if set, decides whether the step runs for this event; false records
	// it as skipped.
	When func(e hookonce.Event) (bool, error)
	// OncePer, if set, gives a value for which the step is done once in the
	// group, even when two events name it. An empty value is an error of the
	// step.
	OncePer func(e hookonce.Event) (string, error)
	// OnlyLatest, if set, says which version of which entity the event brings:
	// an event older than the newest one applied is recorded as stale, an equal
	// one is applied.
	OnlyLatest func(e hookonce.Event) (entity string, version Version, err error)
}

// Statement is one SQL statement with its arguments, in the words of the
// inbox's database.
type Statement = inbox.Statement

// Try is one try of a step's Do.
type Try struct {
	Event       hookonce.Event
	Group, Step string
	// Key is the downstream key: what the target of the effect is told, so that
	// it can take two tries for one. It is the same on every try, see
	// [DownstreamKey].
	Key string
	// Attempt is this try's number, from 1, of at most MaxAttempts.
	Attempt, MaxAttempts int
	// RetryIn is the delay before the next try if this one fails, 0 when it is
	// the last. It is drawn before the call, so that what the target is told is
	// what happens; only [RetryAfter] can lengthen it.
	RetryIn time.Duration
}

// OnUnknown is what happens to an outside effect that was started and has no end.
type OnUnknown string

// The choices of OnUnknown.
const (
	// Rerun tries it again with the same downstream key.
	Rerun OnUnknown = "rerun"
	// Park makes the event a dead letter, reason "unknown", for a person to decide.
	Park OnUnknown = "park"
)

const (
	defaultStepTimeout = time.Minute
	defaultRerunWithin = 20 * time.Hour
)

// PanicError is a step's panic, turned into a failure like any other.
type PanicError struct {
	Value any
	Stack []byte
}

// Error names the panic's value; the stack is logged apart.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// call runs fn and turns its panic into a PanicError.
func call(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}

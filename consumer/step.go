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
type Step struct {
	// Name is unique in its group and stays the same over releases.
	Name string
	// Was lists former names: a step recorded under one of them counts as done.
	Was []string
	// Timeout bounds one attempt. 60s.
	Timeout time.Duration
	// Tx writes to the inbox's database. Its writes commit together with the
	// step's record, or not at all.
	Tx func(ctx context.Context, tx *sql.Tx, e hookonce.Event) error
}

const defaultStepTimeout = time.Minute

// recorded says whether the step needs no more work in this run.
func (s Step) recorded(steps map[string]inbox.Step) bool {
	for _, name := range append([]string{s.Name}, s.Was...) {
		switch steps[name].State {
		case inbox.StepDone, inbox.StepSkipped, inbox.StepStale:
			return true
		}
	}
	return false
}

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

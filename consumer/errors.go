package consumer

import (
	"errors"
	"time"
)

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Permanent marks an error that no further try can mend: the event becomes a
// dead letter now. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type retryAfterError struct {
	err   error
	after time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// RetryAfter asks that the next try come no sooner than d from now; it counts
// as an attempt. RetryAfter(nil, d) is nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfterError{err, d}
}

type unknownError struct{ err error }

func (e *unknownError) Error() string { return e.err.Error() }
func (e *unknownError) Unwrap() error { return e.err }

// Unknown marks an error of a step's Do after which the effect may have
// happened: a timeout after the request was sent, an answer that was lost.
// Step.OnUnknown says what comes next. Unknown(nil) is nil.
func Unknown(err error) error {
	if err == nil {
		return nil
	}
	return &unknownError{err}
}

type notBegunError struct{ err error }

func (e *notBegunError) Error() string { return e.err.Error() }
func (e *notBegunError) Unwrap() error { return e.err }

// NotBegun marks an error of a step's Do whose effect had not begun: it waited
// for its turn, say. Broken off there by the step's timeout, a lost lease or
// the shutdown, it leaves nothing unknown. NotBegun(nil) is nil.
func NotBegun(err error) error {
	if err == nil {
		return nil
	}
	return &notBegunError{err}
}

// fate is what a failed attempt leads to.
type fate struct {
	dead      bool
	permanent bool
	delay     time.Duration
}

// decide is the one place where an error becomes a retry or a dead letter.
// attempt is the number of the attempt that failed, from 1; drawn is the delay
// that was drawn for it.
func (p RetryPolicy) decide(err error, attempt int, drawn time.Duration) fate {
	var permanent *permanentError
	if errors.As(err, &permanent) {
		return fate{dead: true, permanent: true}
	}
	if attempt >= p.MaxAttempts {
		return fate{dead: true}
	}
	var after *retryAfterError
	if errors.As(err, &after) {
		drawn = max(drawn, after.after)
	}
	return fate{delay: drawn}
}

// ceiling is the upper bound of the delay behind the given attempt: First,
// doubled for each further one, at most Max. The delay itself is drawn evenly
// below it (full jitter), so that events which failed together do not come
// back together.
func (p RetryPolicy) ceiling(attempt int) time.Duration {
	d := p.First
	for range attempt - 1 {
		if d >= p.Max/2 {
			return p.Max
		}
		d *= 2
	}
	return min(d, p.Max)
}

package effect

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/hookonce/hookonce/consumer"
)

const (
	// breakAfter is how many failures of a target in a row open its breaker.
	breakAfter = 10
	// breakFor is how long an open breaker lets nothing through; then one call
	// is let through to see.
	breakFor = 10 * time.Second
)

// breaker spares a target that is down, and us the waiting for it: while it is
// open, tries fail at once and come again when it closes at the earliest.
type breaker struct {
	cb     *gobreaker.CircuitBreaker[struct{}]
	pause  time.Duration
	opened atomic.Int64 // Unix nanoseconds of the last opening
}

func newBreaker() *breaker { return newBreakerOf(breakAfter, breakFor) }

func newBreakerOf(failures uint32, pause time.Duration) *breaker {
	b := &breaker{pause: pause}
	b.cb = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:      pause,
		ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
		IsSuccessful: func(err error) bool { return !isUnwell(err) },
		IsExcluded:   isNotTried,
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.opened.Store(time.Now().UnixNano())
			}
		},
	})
	return b
}

// run calls do unless the breaker is open.
func (b *breaker) run(do func() error) error {
	_, err := b.cb.Execute(func() (struct{}, error) { return struct{}{}, do() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		wait := max(time.Until(time.Unix(0, b.opened.Load()).Add(b.pause)), 0)
		return consumer.RetryAfter(errors.New("not tried: the target failed again and again (circuit breaker open)"), wait)
	}
	return err
}

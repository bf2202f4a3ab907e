package effect

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/hookonce/hookonce/consumer"
)

// Rate is how often an effect may happen in this process; the zero Rate is
// without bounds.
type Rate struct {
	Count int
	Per   time.Duration
}

var errRate = errors.New("is not a rate: write a number and a unit, like 50/s, 100/m or 1000/h")

// ParseRate reads "50/s", "100/m" or "1000/h".
func ParseRate(text string) (Rate, error) {
	count, unit, _ := strings.Cut(text, "/")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	per, ok := map[string]time.Duration{"s": time.Second, "m": time.Minute, "h": time.Hour}[strings.TrimSpace(unit)]
	if err != nil || !ok || n < 1 {
		return Rate{}, errRate
	}
	return Rate{Count: n, Per: per}, nil
}

// String is the rate as [ParseRate] reads it.
func (r Rate) String() string {
	if r == (Rate{}) {
		return ""
	}
	return strconv.Itoa(r.Count) + "/" + map[time.Duration]string{time.Second: "s", time.Minute: "m", time.Hour: "h"}[r.Per]
}

// throttle spaces calls evenly.
type throttle struct {
	rate    Rate
	limiter *rate.Limiter // nil: without bounds
}

func newThrottle(r Rate) throttle {
	if r == (Rate{}) {
		return throttle{}
	}
	return throttle{rate: r, limiter: rate.NewLimiter(rate.Limit(float64(r.Count)/r.Per.Seconds()), 1)}
}

// wait waits for this call's turn. A turn that leaves less than need before the
// deadline of ctx is not waited for: the error asks for a try at a later time.
func (t throttle) wait(ctx context.Context, need time.Duration) error {
	if t.limiter == nil {
		return nil
	}
	turn := t.limiter.Reserve()
	delay := turn.Delay()
	if deadline, ok := ctx.Deadline(); ok && delay > 0 && time.Until(deadline) < delay+need {
		turn.Cancel()
		return consumer.NotBegun(consumer.RetryAfter(fmt.Errorf("rate %s: its turn would come only in %s", t.rate, delay.Round(time.Second)), delay))
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		turn.Cancel()
		return consumer.NotBegun(context.Cause(ctx))
	}
}

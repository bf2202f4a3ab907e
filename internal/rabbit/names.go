package rabbit

import (
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/queue"
)

// Names of what all groups share.
const (
	// Exchange is the topic exchange that events are published to.
	Exchange = "hookonce.events"
	// UnroutedExchange is its alternate exchange, a fanout.
	UnroutedExchange = "hookonce.unrouted"
	// UnroutedQueue keeps what no group is bound for, and parked items.
	UnroutedQueue = "hookonce.unrouted"
)

// Delay is a retry bucket: how long it keeps a message, and its name.
type Delay struct {
	Wait time.Duration
	Name string
}

// Delays are the retry buckets of a group, ascending.
func Delays() []Delay {
	return []Delay{
		{time.Second, "1s"},
		{5 * time.Second, "5s"},
		{30 * time.Second, "30s"},
		{2 * time.Minute, "2m"},
		{10 * time.Minute, "10m"},
		{time.Hour, "1h"},
		{6 * time.Hour, "6h"},
	}
}

// GroupQueue is the name of a group's queue; group "-" has the unrouted one.
func GroupQueue(group string) string {
	if group == queue.Unrouted {
		return UnroutedQueue
	}
	return "hookonce." + group
}

// RetryQueue is the name of a group's bucket for a delay.
func RetryQueue(group string, d Delay) string { return GroupQueue(group) + ".retry." + d.Name }

// DeadQueue is the name of a group's queue of dead letters.
func DeadQueue(group string) string { return GroupQueue(group) + ".dead" }

// bucketFor is the largest bucket that keeps a message no longer than wait, or
// the smallest one.
func bucketFor(wait time.Duration) Delay {
	delays := Delays()
	best := delays[0]
	for _, d := range delays {
		if d.Wait <= wait {
			best = d
		}
	}
	return best
}

// Route says where an event is first published to: parked items go straight to
// the unrouted queue, through the default exchange.
func Route(e hookonce.Event) (exchange, key string) {
	if e.Parked != "" {
		return "", UnroutedQueue
	}
	return Exchange, e.Topic()
}

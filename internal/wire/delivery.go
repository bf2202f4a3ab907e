package wire

import (
	"time"

	"github.com/hookonce/hookonce"
)

// Delivery is an event on its way to one consumer group, with the facts that
// travel beside it. The inbox, not the message, decides about attempts; the
// numbers here only carry what a retry or a replay needs.
type Delivery struct {
	hookonce.Event
	// Attempt is the last attempt made when the message was sent; 0 for a first delivery.
	Attempt int
	// Due is when the event may run; zero means now.
	Due time.Time
	// Generation counts replays: 0 for the event as published.
	Generation int
	// Run counts forced runs: 0 for the ordinary one.
	Run int
	// Rerouted marks an event published to the exchange a second time.
	Rerouted bool
	// UnmatchedSince is when a group's consumer first met an event that none of
	// the group's patterns matches; zero for others.
	UnmatchedSince time.Time
	// DeadCopy marks the copy of a dead letter in a .dead queue.
	DeadCopy bool
	// Reason is, on a .dead copy, why the event died.
	Reason string
}

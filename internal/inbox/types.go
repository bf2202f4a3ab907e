package inbox

import (
	"errors"
	"time"

	"github.com/hookonce/hookonce"
)

// State is where an event stands in a consumer group.
type State string

// The states of an event in a group.
const (
	Running   State = "running"
	Retrying  State = "retrying"
	Done      State = "done"
	Dead      State = "dead"
	Discarded State = "discarded"
	Purged    State = "purged"
)

// Reason is why an event became a dead letter.
type Reason string

// The reasons of dead letters.
const (
	Failed    Reason = "failed"    // max_attempts used up
	Permanent Reason = "permanent" // the handler said that trying again is useless
	Unknown   Reason = "unknown"   // an outside effect was started and has no end
	Expired   Reason = "expired"   // received longer ago than inbox.ttl, without a record
	Crashed   Reason = "crashed"   // its process died max_crashes times
	Invalid   Reason = "invalid"   // unreadable, or without a key
	Unrouted  Reason = "unrouted"  // no group matched it
)

// Decision is what a consumer has to do with a delivery.
type Decision uint8

// The decisions of Begin.
const (
	// Run: the event is this consumer's now, under Verdict.Lease.
	Run Decision = iota + 1
	// Settle: nothing is to be done (done, discarded, purged, or an outdated
	// generation): ack it.
	Settle
	// Wait: it runs elsewhere, or its retry is not due: deliver it again at
	// Verdict.Until. No attempt is counted.
	Wait
	// Expire: it was received longer ago than the inbox remembers and has no
	// record: make it a dead letter with reason Expired.
	Expire
	// Crash: it is under Verdict.Lease now, but its process has died too often:
	// make it a dead letter with reason Crashed.
	Crash
)

// Lease is the right to run one event, until it ends or is lost.
type Lease struct {
	Group      string
	Key        hookonce.Key
	Token      hookonce.Token
	Generation int
	Run        int
	// Attempt is the number of this attempt within its generation, from 1.
	Attempt int
}

// Verdict answers one delivery.
type Verdict struct {
	Decision Decision
	Lease    Lease
	// Crashes is how many earlier attempts of this generation ended with their
	// process; from the second on the event is run alone.
	Crashes int
	Until   time.Time
	// Steps are the steps recorded in this run, by name.
	Steps map[string]Step
}

// StepState is what is recorded about one step.
type StepState string

// The states of a step.
const (
	StepDone    StepState = "done"
	StepStarted StepState = "started"
	StepFailed  StepState = "failed"
	StepSkipped StepState = "skipped"
	StepStale   StepState = "stale"
	StepUnknown StepState = "unknown"
)

// Step is the record of one step of an event.
type Step struct {
	Name     string    `json:"name"`
	State    StepState `json:"state"`
	Attempts int       `json:"attempts"`
	At       time.Time `json:"at"`
	// First is when an effect outside was first started; zero for others.
	First time.Time `json:"-"`
	// Detail says more: the error of a failed step, the key a skipped one yielded to.
	Detail string `json:"detail,omitempty"`
}

// Letter is a dead letter: everything needed to judge and to replay an event.
type Letter struct {
	Event  hookonce.Event
	Group  string
	Reason Reason
	Step   string // the failing step; empty when none
	// StepState is what is recorded of that step, failed when empty.
	StepState  StepState
	Error      string
	Attempts   int
	Generation int
	Run        int
	DeadAt     time.Time
	// Open is a step whose effect may have happened: started or unknown, with no
	// end. Empty when there is none. Only reading fills it in.
	Open string
}

// Record is one event in one group, for listings.
type Record struct {
	Key        hookonce.Key
	Type       string
	Group      string
	State      State
	ReceivedAt time.Time
	// Attempts counts over all generations.
	Attempts   int
	Generation int
	LastError  string
	UpdatedAt  time.Time
	// Steps and Timeline are filled by Event, not by Events.
	Steps    []Step
	Timeline []Note
}

// Note is one entry of a record's timeline.
type Note struct {
	At     time.Time `json:"at"`
	What   string    `json:"what"`
	Detail string    `json:"detail,omitempty"`
}

// DeadGroup is a number of dead letters that died alike.
type DeadGroup struct {
	Group  string    `json:"group"`
	Type   string    `json:"type"`
	Reason Reason    `json:"reason"`
	Error  string    `json:"error"` // fingerprinted: digits and ids replaced
	Count  int64     `json:"count"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
}

// Filter selects records or dead letters; zero fields select everything.
type Filter struct {
	Source string
	Type   string // a pattern over the escaped type, as in match: without the source
	Group  string
	Key    *hookonce.Key
	State  State
	Reason Reason
	Error  string // a substring of the error
	Since  time.Time
	Until  time.Time
}

// ErrLeaseLost says that another consumer has taken the event over; nothing
// was written.
var ErrLeaseLost = errors.New("lease lost: another consumer runs this event")

// ErrNotFound says that no record has this key.
var ErrNotFound = errors.New("not found")

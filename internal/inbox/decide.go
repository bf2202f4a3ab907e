package inbox

import (
	"time"

	"github.com/hookonce/hookonce/internal/wire"
)

const (
	// shortWait keeps a delivery away whose event is being worked on this moment.
	shortWait = time.Second
	// longestWait is how long a delivery waits for a lease of unknown length.
	longestWait = 5 * time.Second
	// early is how much before its time a retry may run: a hop through a retry
	// bucket is not worth less.
	early = 250 * time.Millisecond
)

// row is what Begin needs to know of a record.
type row struct {
	state      State
	leaseUntil time.Time
	due        time.Time
	attempt    int
	crashes    int
	generation int
	run        int
}

// ruling is what the rules say about one delivery of a recorded event.
type ruling struct {
	decision Decision
	until    time.Time
	// next is the record as it will be, for Run and Crash.
	next row
	// note is the timeline's entry; empty for none.
	note, detail string
}

// decide applies the rules of a delivery whose event has a record.
func decide(r row, d wire.Delivery, now time.Time, maxCrashes int) ruling {
	switch {
	case r.state == Done, r.state == Discarded, r.state == Purged:
		return ruling{decision: Settle}
	case d.Generation < r.generation:
		return ruling{decision: Settle} // an outdated copy: a later replay has been through
	}
	switch r.state {
	case Running:
		return decideRunning(r, d, now, maxCrashes)
	case Retrying:
		if d.Generation > r.generation {
			return r.replay(d.Generation, d.Run)
		}
		if r.due.After(now.Add(early)) {
			return ruling{decision: Wait, until: r.due}
		}
		r.attempt++
		return ruling{decision: Run, next: r}
	case Dead:
		switch {
		case d.Generation > r.generation:
			return r.replay(d.Generation, d.Run)
		case d.DeadCopy: // an operator moved it from the .dead queue back to the group's
			return r.replay(r.generation+1, r.run)
		}
	}
	return ruling{decision: Settle}
}

func decideRunning(r row, d wire.Delivery, now time.Time, maxCrashes int) ruling {
	if r.leaseUntil.After(now) {
		until := now.Add(longestWait)
		if r.leaseUntil.Before(until) {
			until = r.leaseUntil
		}
		return ruling{decision: Wait, until: until}
	}
	if d.Generation > r.generation {
		return r.replay(d.Generation, d.Run)
	}
	r.attempt++
	r.crashes++
	out := ruling{decision: Run, next: r, note: "crashed", detail: "its lease ended; taken over"}
	if r.crashes >= max(maxCrashes, 1) {
		out.decision = Crash
	}
	return out
}

// replay starts a generation, with its own budget; a forced one has a new run.
func (r row) replay(generation, run int) ruling {
	r.generation, r.attempt, r.crashes, r.run = generation, 1, 0, max(r.run, run)
	return ruling{decision: Run, next: r, note: "replayed", detail: generationText(generation)}
}

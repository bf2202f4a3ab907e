package publisher

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// The relay's bookkeeping. All functions here but those that say so want mu held.

// overhead is roughly what an entry takes beside its texts, in bytes.
const overhead = 512

func sizeOf(e hookonce.Entry) int64 {
	n := len(e.Event.Body) + len(e.Event.Context) + len(e.Event.Key.ID) + len(e.Event.Type) + overhead
	for name, value := range e.Event.Header {
		n += len(name) + len(value)
	}
	return int64(n)
}

// knows reports whether an entry needs nothing: it is on its way, or was
// settled so recently that whoever asks cannot know it yet.
func (r *Relay) knows(id hookonce.EntryID) bool {
	_, flying := r.inFlight[id]
	return flying || r.recent.has(id)
}

func (r *Relay) room(size int64) bool {
	n := len(r.inFlight)
	return n == 0 || n < r.cfg.Window && r.bytes+size <= r.cfg.MaxBytes
}

// take puts an entry in flight.
func (r *Relay) take(e hookonce.Entry) {
	size := sizeOf(e)
	r.inFlight[e.ID] = size
	r.bytes += size
	r.ready = append(r.ready, e)
	r.toSend.ring()
}

// land takes an entry out of flight, with the result that whoever waits for it
// is told.
func (r *Relay) land(id hookonce.EntryID, result error) {
	r.bytes -= r.inFlight[id]
	delete(r.inFlight, id)
	for _, waiter := range r.waiters[id] {
		waiter <- result // has room for one, and gets no other
	}
	delete(r.waiters, id)
	r.changed.ring()
	r.toScan.ring()
}

// miss notes that the outbox holds something that is not in flight.
func (r *Relay) miss() {
	r.missed++
	r.toScan.ring()
}

// next takes the first entry of a station; it takes mu itself.
func (r *Relay) next(station *[]hookonce.Entry) (hookonce.Entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(*station) == 0 {
		return hookonce.Entry{}, false
	}
	e := (*station)[0]
	(*station)[0] = hookonce.Entry{} // or the array would hold the body
	*station = (*station)[1:]
	if len(*station) == 0 {
		*station = nil
	}
	return e, true
}

// forget removes a waiter; it takes mu itself.
func (r *Relay) forget(id hookonce.EntryID, waiter chan error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rest := slices.DeleteFunc(r.waiters[id], func(c chan error) bool { return c == waiter })
	if len(rest) == 0 {
		delete(r.waiters, id)
		return
	}
	r.waiters[id] = rest
}

func unconfirmed(cause error) error { return fmt.Errorf("%w: %w", ErrUnconfirmed, cause) }

// recent remembers the last ids that were settled. A reading of the outbox that
// began before, or an offer that comes late, would else publish them again.
type recent struct {
	ids  map[hookonce.EntryID]struct{}
	ring []hookonce.EntryID
	at   int
}

func newRecent(n int) *recent {
	return &recent{ids: make(map[hookonce.EntryID]struct{}), ring: make([]hookonce.EntryID, 0, n)}
}

func (s *recent) has(id hookonce.EntryID) bool { _, ok := s.ids[id]; return ok }

func (s *recent) add(id hookonce.EntryID) {
	if s.has(id) {
		return
	}
	s.ids[id] = struct{}{}
	if len(s.ring) < cap(s.ring) {
		s.ring = append(s.ring, id)
		return
	}
	delete(s.ids, s.ring[s.at])
	s.ring[s.at] = id
	s.at = (s.at + 1) % len(s.ring)
}

const (
	firstPause = 250 * time.Millisecond
	maxPause   = 30 * time.Second
)

// backoff spaces tries that fail; failures within one pause count once.
type backoff struct {
	failed int
	until  time.Time
}

func (b *backoff) fail(now time.Time) {
	if now.Before(b.until) {
		return
	}
	b.until = now.Add(pauseFor(b.failed))
	b.failed++
}

// pauseFor doubles with every failure and is drawn from its upper half.
func pauseFor(failed int) time.Duration {
	d := min(firstPause<<min(failed, 16), maxPause)
	return d/2 + rand.N(d/2)
}

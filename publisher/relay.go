package publisher

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/telemetry"
)

// Sender is what the relay publishes through; [Publisher] is one. One that has
// SendAlone too (see [Publisher.SendAlone]) lets the relay find the one event
// that the broker does not accept, and set it aside.
type Sender interface {
	Send(ctx context.Context, e hookonce.Event, done func(error))
}

type loneSender interface {
	SendAlone(ctx context.Context, e hookonce.Event) error
}

// RelayConfig makes a [Relay]. Outbox and Sender are needed.
type RelayConfig struct {
	Outbox Outbox
	Sender Sender
	// Window is how many entries are in flight at most: held in memory, from
	// being offered or read to being settled; 4096.
	Window int
	// MaxBytes is how many bytes they may take; 64 MiB. A single larger entry is
	// still published, by itself.
	MaxBytes int64
	// Lease is how long this instance's entries stay its own when it no longer
	// shows that it lives; it does so every third of it. 10s.
	Lease time.Duration
	// DrainTimeout is how long Run goes on at its end for what is in flight; 10s.
	DrainTimeout time.Duration
	// Now is the clock; time.Now.
	Now     func() time.Time
	Logger  *slog.Logger       // slog.Default()
	Metrics *telemetry.Metrics // unregistered ones when nil
}

// Relay empties an outbox into the broker. Every entry it knows is in flight
// exactly once; what it does not know it finds by reading the outbox. So
// however Offer, reading, failures and restarts interleave, an entry is left
// alone only when it has been settled, or set aside: see [Relay.SetAside].
type Relay struct {
	cfg RelayConfig

	mu       sync.Mutex
	open     bool                         // Run is on: entries are taken
	inFlight map[hookonce.EntryID]int64   // in memory: id to size
	bytes    int64                        // their sizes
	recent   *recent                      // settled a short while ago
	aside    map[hookonce.EntryID]refusal // refused by the broker for what they are
	waiters  map[hookonce.EntryID][]chan error

	// The stations of an entry in flight; with the sender it is in none.
	ready, alone, confirmed []hookonce.Entry

	// missed rises whenever the outbox may hold an entry that is not in flight;
	// scanned is what it was when the last complete reading began. While noteOnly
	// is set, offers only raise it.
	missed, scanned uint64
	noteOnly        bool
	backoff         backoff   // of reading again after failed publishes
	paused          time.Time // no sending before: queues are missing

	toSend, toSendAlone, toSettle, toScan, changed bell
}

// bell wakes one goroutine; ringing it twice is ringing it once.
type bell chan struct{}

func (b bell) ring() {
	select {
	case b <- struct{}{}:
	default:
	}
}

// NewRelay makes a relay; it works while Run does.
func NewRelay(cfg RelayConfig) *Relay {
	setDefault(&cfg.Window, 4096)
	setDefault(&cfg.MaxBytes, 64<<20)
	setDefault(&cfg.Lease, 10*time.Second)
	setDefault(&cfg.DrainTimeout, 10*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Metrics == nil {
		cfg.Metrics = telemetry.NewMetrics(nil)
	}
	return &Relay{
		cfg:      cfg,
		inFlight: map[hookonce.EntryID]int64{},
		recent:   newRecent(4*cfg.Window + 4*scanPage),
		aside:    map[hookonce.EntryID]refusal{},
		waiters:  map[hookonce.EntryID][]chan error{},
		missed:   1, // whatever a former process left
		noteOnly: true,
		toSend:   make(bell, 1), toSendAlone: make(bell, 1), toSettle: make(bell, 1),
		toScan: make(bell, 1), changed: make(bell, 1),
	}
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// Run relays until ctx is done, and then until what is in flight has been
// settled or DrainTimeout is over; what is left stays in the outbox. Call it
// once. The result is always nil: a broker or store that is away is tried again.
func (r *Relay) Run(ctx context.Context) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.mu.Lock()
	r.open = true
	r.mu.Unlock()

	var wg sync.WaitGroup
	for _, f := range []func(context.Context){r.sendLoop, r.aloneLoop, r.settleLoop} {
		wg.Go(func() { f(work) })
	}
	wg.Go(func() { r.scanLoop(ctx) })
	wg.Go(func() { r.leaseLoop(ctx, work) })
	wg.Go(func() { r.gaugeLoop(ctx) })

	<-ctx.Done()
	r.mu.Lock()
	r.open = false
	r.mu.Unlock()
	r.drain()
	cancel()
	wg.Wait()
	return nil
}

// drain waits for what is in flight.
func (r *Relay) drain() {
	t := time.NewTimer(r.cfg.DrainTimeout)
	defer t.Stop()
	for {
		r.mu.Lock()
		left := len(r.inFlight)
		r.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-r.changed:
		case <-t.C:
			r.cfg.Logger.Warn("events are still unconfirmed; they stay in the outbox and will be published again", "events", left)
			return
		}
	}
}

// Offer hands over the entry of an event that was just claimed; it is published
// from memory, straight away. Offer never blocks: when there is no room for the
// entry, it is found in the outbox later.
func (r *Relay) Offer(e hookonce.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.knows(e.ID):
	case r.open && !r.noteOnly && r.room(sizeOf(e)):
		r.take(e)
	default:
		r.miss()
		r.noteOnly = true
	}
}

// Confirm offers an entry and waits until it has been published and settled.
// An error is that of the first publish that failed, or ErrUnconfirmed when ctx
// ends; the entry stays offered and will be published all the same.
func (r *Relay) Confirm(ctx context.Context, e hookonce.Entry) error {
	r.mu.Lock()
	if r.recent.has(e.ID) {
		r.mu.Unlock()
		return nil
	}
	result := make(chan error, 1)
	r.waiters[e.ID] = append(r.waiters[e.ID], result)
	r.mu.Unlock()
	r.Offer(e)
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		r.forget(e.ID, result)
		return unconfirmed(ctx.Err())
	}
}

// Idle reports whether nothing is in flight and the outbox holds nothing more
// that could be published now.
func (r *Relay) Idle() bool {
	inFlight, more := r.Backlog()
	return inFlight == 0 && !more
}

// Backlog is how many entries are in flight, and whether the outbox may hold
// more of them.
func (r *Relay) Backlog() (inFlight int, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inFlight), r.missed != r.scanned
}

// SetAside is how many entries the broker refuses for what they are. They stay
// in the outbox and are tried again, each alone, hourly and when a relay starts.
func (r *Relay) SetAside() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.aside)
}

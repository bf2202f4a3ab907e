package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testenv"
	"github.com/hookonce/hookonce/publisher"
)

func TestMain(m *testing.M) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // the proxy talks
	// The proxy leaves goroutines behind that wait for each other when a fault is
	// taken away in the middle of a transfer.
	os.Exit(testenv.Run(m,
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/stream.(*ChanWriter).Write"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).write"),
	))
}

// box is an outbox in memory, with the entries of one dead instance besides.
type box struct {
	mu      sync.Mutex
	next    uint64
	entries []hookonce.Entry
	dead    []hookonce.Event
	broken  bool // every call fails
	adopts  int
}

var errBroken = errors.New("store away")

func (b *box) add(body string) hookonce.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.addLocked(hookonce.Event{Key: hookonce.Key{Source: "s", ID: body}, Body: []byte(body)})
}

func (b *box) addEvent(e hookonce.Event) hookonce.Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.addLocked(e)
}

func (b *box) addLocked(e hookonce.Event) hookonce.Entry {
	b.next++
	entry := hookonce.Entry{ID: hookonce.EntryID{Lo: b.next}, Event: e}
	b.entries = append(b.entries, entry)
	return entry
}

func (b *box) Pending(_ context.Context, after hookonce.EntryID, n int) ([]hookonce.Entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return nil, errBroken
	}
	var page []hookonce.Entry
	for _, e := range b.entries {
		if e.ID.Lo > after.Lo && len(page) < n {
			page = append(page, e)
		}
	}
	return page, nil
}

func (b *box) Settle(_ context.Context, entries []hookonce.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return errBroken
	}
	gone := map[hookonce.EntryID]bool{}
	for _, e := range entries {
		gone[e.ID] = true
	}
	b.entries = slices.DeleteFunc(b.entries, func(e hookonce.Entry) bool { return gone[e.ID] })
	return nil
}

func (b *box) Adopt(_ context.Context, n int) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken {
		return 0, errBroken
	}
	b.adopts++
	n = min(n, len(b.dead))
	for _, e := range b.dead[:n] {
		b.addLocked(e)
	}
	b.dead = b.dead[n:]
	return n, nil
}

func (b *box) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// count is how many entries there ever were.
func (b *box) count() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.next
}

func (b *box) renewals() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.adopts
}

func (b *box) setBroken(v bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.broken = v
}

// wirer is a sender with a delay, which may fail or swallow events.
type wirer struct {
	mu       sync.Mutex
	delay    time.Duration
	fail     func(id string, try int) error
	tries    map[string]int
	sent     map[string]int // confirmed
	order    []string
	flying   int
	mostEver int
}

func newWirer() *wirer {
	return &wirer{delay: 10 * time.Millisecond, tries: map[string]int{}, sent: map[string]int{}}
}

func (w *wirer) Send(_ context.Context, e hookonce.Event, done func(error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := e.Key.ID
	w.tries[id]++
	var err error
	if w.fail != nil {
		err = w.fail(id, w.tries[id])
	}
	w.order = append(w.order, id)
	w.flying++
	w.mostEver = max(w.mostEver, w.flying)
	time.AfterFunc(w.delay, func() {
		w.mu.Lock()
		w.flying--
		if err == nil {
			w.sent[id]++
		}
		w.mu.Unlock()
		done(err)
	})
}

func (w *wirer) confirm(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent[id]++
}

func (w *wirer) counts() (distinct, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.sent {
		total += n
	}
	return len(w.sent), total
}

// relaying runs a relay in a bubble of virtual time.
func relaying(t *testing.T, cfg publisher.RelayConfig, test func(r *publisher.Relay)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
		cfg.Lease = 9 * time.Second
		r := publisher.NewRelay(cfg)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		test(r)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func wantOnce(t *testing.T, b *box, w *wirer, n int) {
	t.Helper()
	distinct, total := w.counts()
	if distinct != n || total != n || b.size() != 0 {
		t.Errorf("%d events published, %d times in all, %d left; want %d once each", distinct, total, b.size(), n)
	}
}

func TestEveryOfferIsPublishedOnceAndSettled(t *testing.T) {
	b, w := &box{}, newWirer()
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(r *publisher.Relay) {
		<-time.After(time.Second) // past the first look
		for i := range 1000 {
			r.Offer(b.add(fmt.Sprint(i)))
		}
		<-time.After(time.Minute)
		wantOnce(t, b, w, 1000)
		if !r.Idle() {
			t.Error("not idle")
		}
	})
}

func TestWhatWasThereBeforeTheStartIsPublishedInOrder(t *testing.T) {
	b, w := &box{}, newWirer()
	var want []string
	for i := range 2345 {
		want = append(want, b.add(fmt.Sprint(i)).Event.Key.ID)
	}
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w, Window: 100}, func(*publisher.Relay) {
		<-time.After(time.Minute)
		wantOnce(t, b, w, 2345)
		if !slices.Equal(w.order, want) {
			t.Error("published in another order")
		}
		if w.mostEver > 100 {
			t.Errorf("%d on their way, window is 100", w.mostEver)
		}
	})
}

func TestOffersThatRaceWithTheScannerAreNeitherLostNorRepeated(t *testing.T) {
	b, w := &box{}, newWirer()
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w, Window: 50}, func(r *publisher.Relay) {
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 500 {
					e := b.add(fmt.Sprintf("%d-%d", g, i))
					if i%7 == 0 {
						<-time.After(time.Duration(i%13) * time.Millisecond) // the scanner may be faster
					}
					r.Offer(e)
					if i%20 == 0 {
						<-time.After(3 * time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		<-time.After(time.Minute)
		wantOnce(t, b, w, 4000)
		if w.mostEver > 50 {
			t.Errorf("%d on their way, window is 50", w.mostEver)
		}
	})
}

func TestAFailedPublishIsTriedAgainAndTakesNobodyAlong(t *testing.T) {
	b, w := &box{}, newWirer()
	w.fail = func(id string, try int) error {
		if id == "7" && try < 4 || try == 1 && len(id) == 2 {
			return publisher.ErrUnconfirmed
		}
		return nil
	}
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(r *publisher.Relay) {
		for i := range 200 {
			r.Offer(b.add(fmt.Sprint(i)))
		}
		<-time.After(time.Minute)
		wantOnce(t, b, w, 200)
	})
}

func TestAStoreThatFailsToSettleDoesNotCauseASecondPublish(t *testing.T) {
	b, w := &box{}, newWirer()
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(r *publisher.Relay) {
		<-time.After(time.Second)
		for i := range 300 {
			r.Offer(b.add(fmt.Sprint(i)))
		}
		b.setBroken(true)
		<-time.After(30 * time.Second)
		if b.size() != 300 {
			t.Errorf("%d entries left in a broken store", b.size())
		}
		b.setBroken(false)
		<-time.After(time.Minute)
		wantOnce(t, b, w, 300)
	})
}

func TestEntriesOfDeadInstancesAreTakenOver(t *testing.T) {
	b, w := &box{}, newWirer()
	for i := range 1000 {
		b.dead = append(b.dead, hookonce.Event{Key: hookonce.Key{Source: "s", ID: fmt.Sprint("dead-", i)}})
	}
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(*publisher.Relay) {
		<-time.After(5 * time.Second)
		wantOnce(t, b, w, 1000)
		before := b.renewals()
		<-time.After(30 * time.Second)
		if n := b.renewals() - before; n < 9 || n > 12 {
			t.Errorf("the lease of 9 s was renewed %d times in 30 s", n)
		}
	})
}

func TestConfirmPublishesNowAndSettles(t *testing.T) {
	b, w := &box{}, newWirer()
	w.fail = func(id string, try int) error {
		if id == "bad" && try == 1 {
			return publisher.ErrNacked
		}
		return nil
	}
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(r *publisher.Relay) {
		<-time.After(time.Second)
		if err := r.Confirm(context.Background(), b.add("good")); err != nil {
			t.Error(err)
		}
		if err := r.Confirm(context.Background(), b.add("bad")); !errors.Is(err, publisher.ErrNacked) {
			t.Errorf("refused event: %v", err)
		}
		<-time.After(time.Minute)
		wantOnce(t, b, w, 2)
	})
}

func TestAtItsEndTheRelayWaitsForWhatIsOnItsWay(t *testing.T) {
	b, w := &box{}, newWirer()
	w.delay = 2 * time.Second
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(r *publisher.Relay) {
		<-time.After(time.Second)
		for i := range 10 {
			r.Offer(b.add(fmt.Sprint(i)))
		}
	})
	wantOnce(t, b, w, 10)
}

func TestAtItsEndTheRelayLeavesTheRestInTheOutbox(t *testing.T) {
	b, w := &box{}, newWirer()
	w.delay = 30 * time.Second
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w, DrainTimeout: time.Second}, func(r *publisher.Relay) {
		<-time.After(time.Second)
		r.Offer(b.add("slow"))
	})
	if b.size() != 1 {
		t.Errorf("%d entries in the outbox, want the one without a confirm", b.size())
	}
}

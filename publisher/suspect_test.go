package publisher_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/publisher"
)

// loner is a wirer that can send alone; the broker refuses its bad ids.
type loner struct {
	*wirer
	amu   sync.Mutex
	bad   map[string]bool
	alone []string
}

func (l *loner) SendAlone(_ context.Context, e hookonce.Event) error {
	l.amu.Lock()
	l.alone = append(l.alone, e.Key.ID)
	bad := l.bad[e.Key.ID]
	l.amu.Unlock()
	if bad {
		return publisher.ErrRefused
	}
	l.confirm(e.Key.ID)
	return nil
}

func (l *loner) setBad(id string, bad bool) { l.amu.Lock(); defer l.amu.Unlock(); l.bad[id] = bad }

func (l *loner) aloneCount() int { l.amu.Lock(); defer l.amu.Unlock(); return len(l.alone) }

func newLoner(bad ...string) *loner {
	l := &loner{wirer: newWirer(), bad: map[string]bool{}}
	for _, id := range bad {
		l.bad[id] = true
	}
	// The channel is closed by the bad one, and takes ids that end in 5 along.
	l.fail = func(id string, _ int) error {
		l.amu.Lock()
		defer l.amu.Unlock()
		if l.bad[id] || strings.HasSuffix(id, "5") {
			return fmt.Errorf("%w: %w", publisher.ErrUnconfirmed, publisher.ErrSuspect)
		}
		return nil
	}
	return l
}

func TestTheGuiltyOneOfManySuspectsIsSetAside(t *testing.T) {
	b, w := &box{}, newLoner("42")
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(r *publisher.Relay) {
		<-time.After(time.Second)
		for i := range 100 {
			r.Offer(b.add(fmt.Sprint(i)))
		}
		<-time.After(50 * time.Minute)
		if distinct, total := w.counts(); distinct != 99 || total != 99 || b.size() != 1 || r.SetAside() != 1 {
			t.Errorf("%d published, %d times, %d left, %d set aside", distinct, total, b.size(), r.SetAside())
		}
		if n := w.aloneCount(); n != 11 {
			t.Errorf("%d sent alone, want the 11 suspects once each", n)
		}
		if !r.Idle() {
			t.Error("an entry that is set aside keeps the relay busy")
		}
		<-time.After(30 * time.Minute) // tried again after an hour, and refused again
		if n := w.aloneCount(); n != 12 || r.SetAside() != 1 {
			t.Errorf("%d sent alone, %d set aside", n, r.SetAside())
		}
		w.setBad("42", false) // the operator raised the broker's limit
		<-time.After(time.Hour)
		if r.SetAside() != 0 || b.size() != 0 {
			t.Errorf("%d set aside, %d left", r.SetAside(), b.size())
		}
	})
}

func TestWhatWasSetAsideAndDiscardedIsForgotten(t *testing.T) {
	b, w := &box{}, newLoner("1")
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(r *publisher.Relay) {
		e := b.add("1")
		r.Offer(e)
		<-time.After(time.Minute)
		if r.SetAside() != 1 {
			t.Fatalf("%d set aside", r.SetAside())
		}
		if err := b.Settle(context.Background(), []hookonce.Entry{e}); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if r.SetAside() != 0 {
			t.Errorf("%d set aside", r.SetAside())
		}
	})
}

func TestMissingQueuesPausePublishing(t *testing.T) {
	b, w := &box{}, newWirer()
	var mu sync.Mutex
	missing := true
	w.fail = func(string, int) error {
		mu.Lock()
		defer mu.Unlock()
		if missing {
			return publisher.ErrUnroutable
		}
		return nil
	}
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w, Window: 10}, func(r *publisher.Relay) {
		for i := range 1000 {
			r.Offer(b.add(fmt.Sprint(i)))
		}
		<-time.After(5 * time.Minute)
		w.mu.Lock()
		tries := len(w.order)
		w.mu.Unlock()
		if tries == 0 || tries > 500 {
			t.Errorf("tried %d times in 5 minutes without queues", tries)
		}
		mu.Lock()
		missing = false
		mu.Unlock()
		<-time.After(5 * time.Minute)
		wantOnce(t, b, w, 1000)
	})
}

func TestAnEntryThatNobodyOfferedIsFound(t *testing.T) {
	b, w := &box{}, newWirer()
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w}, func(r *publisher.Relay) {
		<-time.After(time.Minute)
		b.add("the claim's answer was lost")
		<-time.After(10 * time.Second)
		wantOnce(t, b, w, 1)
	})
}

func TestMemoryIsBoundedByBytes(t *testing.T) {
	b, w := &box{}, newWirer()
	w.delay = time.Second
	body := strings.Repeat("x", 10<<10)
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w, MaxBytes: 100 << 10}, func(r *publisher.Relay) {
		for i := range 200 {
			r.Offer(b.add(fmt.Sprint(i) + body))
		}
		<-time.After(10 * time.Minute)
		wantOnce(t, b, w, 200)
		if w.mostEver > 10 {
			t.Errorf("%d of 10 KiB at once in 100 KiB", w.mostEver)
		}
		r.Offer(b.add(strings.Repeat("y", 1<<20)))
		<-time.After(time.Minute)
		wantOnce(t, b, w, 201)
	})
}

// Under a load that never pauses the relay must find back from reading the
// outbox to publishing from memory.
func TestASteadyLoadDoesNotKeepTheRelayReading(t *testing.T) {
	b, w := &box{}, newWirer()
	for i := range 5000 {
		b.add(fmt.Sprint("old-", i))
	}
	relaying(t, publisher.RelayConfig{Outbox: b, Sender: w, Window: 100}, func(r *publisher.Relay) {
		for i := range 20000 {
			r.Offer(b.add(fmt.Sprint(i)))
			if i%2 == 1 {
				<-time.After(time.Millisecond)
			}
		}
		if _, more := r.Backlog(); more && b.size() > 1000 {
			t.Errorf("%d entries behind at the end of the load", b.size())
		}
		<-time.After(time.Minute)
		wantOnce(t, b, w, 25000)
	})
}

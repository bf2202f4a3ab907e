package guarantee

import (
	"testing"
	"time"
)

// P5: what a receiver claimed and could not publish before it was killed,
// another one publishes within 5 s of the lease's end; nobody sends again.
func TestP5_AnotherReceiverFinishesWhatADeadOneLeft(t *testing.T) {
	const events, lease = 300, 3 * time.Second
	s := newSplit(t, false)
	cut := s.secondReceiver("broker.url=amqp://127.0.0.1:1/") // its broker is out of reach
	s.start()
	cut.start()
	for _, o := range orderIDs("L", events) {
		mustPost(t, cut.hooks+"/hooks/orders", orderBody(o), nil)
	}
	cut.kill()
	killed := time.Now()
	s.waitRows(lease+5*time.Second, events, "select count(distinct order_id) from tickets")
	t.Logf("all published and done %v after the kill; the lease is %v", time.Since(killed).Round(10*time.Millisecond), lease)
	s.exactlyOnce(events)
}

// When nothing crashes, two receivers that share a store publish each event once.
func TestPublish_TwoReceiversShareTheWorkWithoutPublishingTwice(t *testing.T) {
	const events = 400
	s := newSplit(t, false)
	other := s.secondReceiver()
	s.start()
	other.start()
	spy := spyOn(t, s.amqp)
	orders := orderIDs("T", events)
	done := make(chan struct{})
	go func() {
		defer close(done)
		load(t, other.hooks+"/hooks/orders", orders)
	}()
	load(t, s.hooks+"/hooks/orders", orders)
	<-done
	s.waitRows(60*time.Second, events, "select count(*) from tickets")
	// Two leases long each could take the other for dead.
	quiet := time.NewTimer(6 * time.Second)
	defer quiet.Stop()
	seen := map[string]int{}
	for waiting := true; waiting; {
		select {
		case d := <-spy:
			seen[d.MessageId]++
		case <-quiet.C:
			waiting = false
		}
	}
	if len(seen) != events {
		t.Errorf("%d keys were published, want %d", len(seen), events)
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s was published %d times", key, n)
		}
	}
	s.exactlyOnce(events)
}

// hooked is a further receiver with an address of its own.
type hooked struct {
	*process
	hooks string
}

// secondReceiver is one more receiver on the same servers; it is not started.
// It is ready once it serves, whatever it says about its broker.
func (s *shape) secondReceiver(settings ...string) hooked {
	listen, small := freeAddr(s.t), freeAddr(s.t)
	p := newProcess(s.t, "receiver", "http://"+small+"/readyz", s.receiver.args...)
	p.set(append(settings, "receiver.listen="+listen, "receiver.admin_listen="+small)...)
	return hooked{process: p, hooks: "http://" + listen}
}

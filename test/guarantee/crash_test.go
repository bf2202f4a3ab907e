package guarantee

import (
	"testing"
	"time"
)

// P1, P5: kill -9 of any process or server under load loses nothing that was
// accepted and repeats no effect.
func TestP1_KillingAnythingUnderLoadLosesAndRepeatsNothing(t *testing.T) {
	const events = 2000
	t.Run("one", func(t *testing.T) {
		s := newOne(t)
		s.start()
		underLoad(t, s, events, func() {
			s.receiver.kill()
			s.receiver.start()
		})
	})
	t.Run("split", func(t *testing.T) {
		s := newSplit(t, true)
		s.start()
		victims := []func(){
			func() { s.receiver.kill(); s.receiver.start() },
			func() { s.consumer.kill(); s.consumer.start() },
			func() { s.redis.Kill(); s.redis.Start() },
			func() { s.broker.Kill(); s.broker.Start() },
			func() { s.postgres.Kill(); s.postgres.Start() },
		}
		underLoad(t, s, events, func() {
			victims[0]()
			victims = append(victims[1:], victims[0])
		})
	})
}

// underLoad delivers the events while kill is called again and again, at least
// five times, and wants every one exactly once.
func underLoad(t *testing.T, s *shape, events int, kill func()) {
	t.Helper()
	orders := orderIDs("K", events)
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for part := range 4 {
			load(t, s.hooks+"/hooks/orders", orders[part*events/4:(part+1)*events/4])
		}
	}()
	pause := time.NewTicker(400 * time.Millisecond)
	defer pause.Stop()
	for kills := 0; ; {
		select {
		case <-pause.C:
			kill()
			kills++
			continue
		case <-accepted:
		}
		for ; kills < 5; kills++ {
			kill()
		}
		break
	}
	s.exactlyOnce(events)
}

// P6: while the broker is away, answers stay 2xx; afterwards every event arrives.
func TestP6_WithTheBrokerStoppedAnswersStayPositiveAndAllArrives(t *testing.T) {
	s := newSplit(t, true)
	s.start()
	orders := orderIDs("B", 200)
	url := s.hooks + "/hooks/orders"
	for _, o := range orders[:50] {
		mustPost(t, url, orderBody(o), nil)
	}
	s.broker.Stop()
	for _, o := range orders[50:] {
		mustPost(t, url, orderBody(o), nil)
	}
	for _, o := range orders[40:60] {
		if a := mustPost(t, url, orderBody(o), nil); !a.replayed {
			t.Errorf("order %s was not known as a duplicate while the broker was away", o)
		}
	}
	s.broker.Start()
	s.exactlyOnce(len(orders))
}

// P1: what arrives before any consumer exists waits for the first one.
func TestP1_EventsFromBeforeTheFirstConsumerAreNotLost(t *testing.T) {
	s := newSplit(t, false)
	s.receiver.start()
	orders := orderIDs("E", 100)
	for _, o := range orders {
		mustPost(t, s.hooks+"/hooks/orders", orderBody(o), nil)
	}
	s.consumer.start()
	s.exactlyOnce(len(orders))
}

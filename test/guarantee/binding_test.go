package guarantee

import (
	"errors"
	"testing"
	"time"
)

// A group whose match lost a pattern gets no more of its events: they wait as
// events that nobody wants, and are not held in the group's queue.
func TestAPatternThatAGroupNoLongerNamesIsUnbound(t *testing.T) {
	s := newSplit(t, false)
	s.start()
	mustPost(t, s.hooks+"/hooks/shop", orderBody("B-1"), nil)
	s.waitRows(20*time.Second, 1, "select count(*) from tickets")

	s.consumer.term()
	s.consumer.set(`consumers.tickets.match=["orders.#"]`)
	s.consumer.start()
	within(t, 20*time.Second, "shop.# is unbound", func() error {
		n, err := s.ints("select count(*) from hookonce.bindings where pattern = 'shop.#'")
		if err == nil && n != 0 {
			err = errors.New("it is not")
		}
		return err
	})
	mustPost(t, s.hooks+"/hooks/shop", orderBody("B-2"), nil)
	if dead := s.waitDead("shop/B-2"); dead["group"] != "-" || dead["reason"] != "unrouted" {
		t.Errorf("dead letter %v, want group -", dead)
	}
	mustPost(t, s.hooks+"/hooks/orders", orderBody("B-3"), nil)
	s.exactlyOnce(2)
}

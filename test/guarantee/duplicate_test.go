package guarantee

import (
	"testing"
	"time"
)

// P2, P4: an order delivered many times at once, late, and after a restart
// gives one ticket, and every answer is the first one.
func TestP4_AnOrderDeliveredFiftyTimesGivesOneTicketAndOneAnswer(t *testing.T) {
	everyStore(t, func(t *testing.T, s *shape) {
		s.start()
		url, body := s.hooks+"/hooks/orders", orderBody("A-1")
		send := func() (answer, error) { return post(url, body, nil) }

		answers := together(t, 50, send)
		s.waitRows(30*time.Second, 1, "select count(*) from tickets")
		late := mustPost(t, url, body, nil)
		s.restart()
		later := mustPost(t, url, body, nil)
		answers = append(answers, late, later)

		first := 0
		for _, a := range answers {
			if a.status != 202 || a.body != "queued" || a.key != "orders/A-1" {
				t.Errorf("answer %+v, want 202 queued orders/A-1", a)
			}
			if !a.replayed {
				first++
			}
		}
		if first != 1 {
			t.Errorf("%d of %d answers are not marked as replayed, want 1", first, len(answers))
		}
		s.exactlyOnce(1)
	})
}

// P2: a WhatsApp message delivered at once and late gets one reply.
func TestP2_AWhatsAppMessageGetsOneReply(t *testing.T) {
	bothShapes(t, func(t *testing.T, s *shape) {
		s.start()
		body := `{"kind":"message","message":{"id":"wamid.HBgM","text":"oi"}}`
		send := func() (answer, error) { return post(s.hooks+"/hooks/whatsapp-in", body, nil) }
		together(t, 20, send)
		s.waitRows(30*time.Second, 1, "select count(*) from replies where message_id = 'wamid.HBgM'")
		if a, err := send(); err != nil || !a.replayed {
			t.Errorf("late delivery: %+v, %v; want the first answer again", a, err)
		}
		s.settle()
		s.waitRows(time.Second, 1, "select count(*) from replies")
	})
}

// P2: Stripe signs each attempt anew; the event is still one.
func TestP2_AStripeEventUnderTwoSignaturesTakesEffectOnce(t *testing.T) {
	bothShapes(t, func(t *testing.T, s *shape) {
		s.start()
		body := `{"id":"evt_1","object":"event","type":"checkout.session.completed","data":{"object":{"id":"cs_1","client_reference_id":"A-7"}}}`
		now := time.Now()
		signatures := []string{
			stripeSignature(stripeSecret, body, now.Add(-time.Minute)),
			stripeSignature(stripeSecret, body, now),
			stripeSignature(stripeOldSecret, body, now),
		}
		for i, sig := range signatures {
			a := mustPost(t, s.hooks+"/hooks/stripe", body, map[string]string{"Stripe-Signature": sig})
			if a.key != "stripe/evt_1" || a.replayed != (i > 0) {
				t.Errorf("delivery %d: %+v", i+1, a)
			}
		}
		s.exactlyOnce(1)
	})
}

// P2: the same id in two sources of one group is two events.
func TestP2_TwoSourcesWithTheSameIdAreTwoEvents(t *testing.T) {
	bothShapes(t, func(t *testing.T, s *shape) {
		s.start()
		for range 3 {
			mustPost(t, s.hooks+"/hooks/orders", orderBody("S-1"), nil)
			mustPost(t, s.hooks+"/hooks/shop", orderBody("S-1"), nil)
		}
		s.waitRows(30*time.Second, 2, "select count(*) from tickets where order_id = 'S-1'")
		s.settle()
		s.waitRows(time.Second, 2, "select count(distinct event) from tickets")
		s.waitRows(time.Second, 2, "select count(*) from tickets")
	})
}

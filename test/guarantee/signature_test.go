package guarantee

import (
	"testing"
	"time"
)

// P7: a refused delivery leaves nothing behind that blocks the real one.
func TestP7_ARefusedDeliveryDoesNotBlockTheRealOne(t *testing.T) {
	bothShapes(t, func(t *testing.T, s *shape) {
		s.start()
		body := `{"id":"evt_7","object":"event","type":"checkout.session.completed","data":{"object":{"client_reference_id":"A-70"}}}`
		forged := map[string]string{"Stripe-Signature": stripeSignature("whsec_of_somebody_else", body, time.Now())}
		for _, c := range []struct {
			what, path, body string
			header           map[string]string
			status           int
		}{
			{"bad signature", "/hooks/stripe", body, forged, 401},
			{"no signature", "/hooks/stripe", body, nil, 401},
			{"unknown source", "/hooks/nobody", body, nil, 404},
			{"no key", "/hooks/orders", `{"event":"order.paid"}`, nil, 400},
			{"unreadable", "/hooks/orders", `{"order":`, nil, 400},
			{"too large", "/hooks/orders", `{"order":{"id":"A-70"},"x":"` + string(make([]byte, 2<<20)) + `"}`, nil, 413},
		} {
			a, err := post(s.hooks+c.path, c.body, c.header)
			if err != nil || a.status != c.status {
				t.Errorf("%s: status %d, %v; want %d", c.what, a.status, err, c.status)
			}
		}
		real := map[string]string{"Stripe-Signature": stripeSignature(stripeSecret, body, time.Now())}
		if a := mustPost(t, s.hooks+"/hooks/stripe", body, real); a.replayed {
			t.Errorf("the real delivery was taken for a duplicate: %+v", a)
		}
		s.exactlyOnce(1)
	})
}

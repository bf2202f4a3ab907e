package guarantee

import (
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// When nothing crashes, a queue bound to the exchange sees every event once,
// its message id being the full key.
func TestPublish_ASpyQueueSeesEveryKeyOnce(t *testing.T) {
	s := newSplit(t, false)
	s.start()
	spy := spyOn(t, s.amqp)

	orders := orderIDs("P", 300)
	load(t, s.hooks+"/hooks/orders", orders)
	load(t, s.hooks+"/hooks/shop", orders[:50])
	s.waitRows(60*time.Second, 350, "select count(*) from tickets")
	s.settle()

	seen := map[string]int{}
	for len(seen) < 351 { // the settling event included
		select {
		case d := <-spy:
			seen[d.MessageId]++
			if d.Headers["hookonce-key"] != d.MessageId || d.DeliveryMode != amqp.Persistent || d.AppId != "hookonce" {
				t.Errorf("message %q: headers %v, delivery mode %d, app id %q", d.MessageId, d.Headers, d.DeliveryMode, d.AppId)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("the spy saw %d keys only", len(seen))
		}
	}
	select {
	case d := <-spy:
		t.Errorf("one more message: %q", d.MessageId)
	default:
	}
	for _, o := range orders {
		if n := seen["orders/"+o]; n != 1 {
			t.Errorf("orders/%s was published %d times", o, n)
		}
	}
	for _, o := range orders[:50] {
		if n := seen["shop/"+o]; n != 1 {
			t.Errorf("shop/%s was published %d times", o, n)
		}
	}
}

// spyOn binds a queue of its own to everything that is published.
func spyOn(t *testing.T, url string) <-chan amqp.Delivery {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.Qos(1000, 0, false); err != nil {
		t.Fatal(err)
	}
	q, err := ch.QueueDeclare("", false, true, true, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind(q.Name, "#", "hookonce.events", false, nil); err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return deliveries
}

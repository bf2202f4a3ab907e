package guarantee

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"
)

// flowTime is how long the flow is under fire; HOOKONCE_TEST_FLOW (60s) makes it
// longer and changes nothing else.
func flowTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("HOOKONCE_TEST_FLOW")
	if text == "" {
		return 6 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("HOOKONCE_TEST_FLOW: %v", err)
	}
	return d
}

// flow is an order's way: ticket row, e-mail, call to the CRM; and beside it a
// charge, which nobody may repeat without being asked.
func flow(m *mailSink, p *postSink) addition {
	return addition{
		sources: `
  flow:
    provider: generic
    verify: none
    key: [ "json:order.id" ]
    type: "json:event"
`,
		consumers: fmt.Sprintf(`
  flow:
    match: [ "flow.order.paid" ]
    retry: { max_attempts: 12, first: 200ms, max: 2s }
    effects:
      - name: issue-ticket
        sql: insert into flow_tickets (order_id) values (:id)
        params: { id: "json:order.id" }
      - name: mail-ticket
        email: { smtp: "smtp://%s", from: tickets@example.com, to: "json:order.email", subject: "{{ .json.order.id }}", text: ticket.txt }
      - name: tell-crm
        when: json.order.total > 0
        forward: { url: "%s/crm", secret: whsec_c2VjcmV0, allow_private: 127.0.0.0/8, success: "json.ok" }
  charge:
    match: [ "flow.order.paid" ]
    retry: { max_attempts: 12, first: 200ms, max: 2s }
    effects:
      - name: charge
        forward: { url: "%s/charge", allow_private: 127.0.0.0/8 }
        on_unknown: park
`, m.addr, p.url, p.url),
		tables: "create table flow_tickets (order_id text not null);\n",
		files:  map[string]string{"ticket.txt": "Order {{ .json.order.id }}, {{ .json.order.total }} EUR\n"},
	}
}

// P2: order paid -> ticket row -> e-mail -> call, with duplicates and kill -9 of
// the consumer every two seconds: one row each, no e-mail under a second
// Message-ID, no call under a second Idempotency-Key, none missing. A charge
// that may have happened waits for a person.
func TestP2_TheTicketFlowSurvivesKillsWithoutASecondKey(t *testing.T) {
	for _, name := range []string{"one", "split"} {
		t.Run(name, func(t *testing.T) {
			m, p := newMailSink(t), newPostSink(t)
			var s *shape
			if name == "one" {
				s = newOneWith(t, flow(m, p))
			} else {
				s = newSplitWith(t, "redis", false, flow(m, p))
			}
			s.start()
			orders := s.underFire(flowTime(t))
			s.flowArrived(m, p, orders)
			s.chargesSettled(p, orders)
		})
	}
}

// underFire delivers orders, three in ten of them twice, while the consumer is
// killed every two seconds, and returns those that were accepted.
func (s *shape) underFire(length time.Duration) []string {
	s.t.Helper()
	end := time.After(length)
	post, kill := time.NewTicker(25*time.Millisecond), time.NewTicker(2*time.Second)
	defer post.Stop()
	defer kill.Stop()
	var orders []string
	var sending sync.WaitGroup
	defer sending.Wait()
	slots := make(chan struct{}, 32)
	send := func(id string) {
		slots <- struct{}{}
		sending.Go(func() {
			defer func() { <-slots }()
			deliver(s.t, s.hooks+"/hooks/flow", orderBody(id), nil)
		})
	}
	for kills := 0; ; {
		select {
		case <-post.C:
			id := fmt.Sprintf("F-%05d", len(orders))
			orders = append(orders, id)
			send(id)
			if rand.N(10) < 3 {
				send(orders[rand.N(len(orders))])
			}
		case <-kill.C:
			s.consumer.kill()
			s.consumer.start()
			kills++
		case <-end:
			s.t.Logf("%d orders, %d kills", len(orders), kills)
			return orders
		}
	}
}

// flowArrived waits until every order is through, lets what may still be on its
// way arrive, and counts.
func (s *shape) flowArrived(m *mailSink, p *postSink, orders []string) {
	s.t.Helper()
	s.waitRows(90*time.Second, len(orders), "select count(distinct order_id) from flow_tickets")
	within(s.t, 90*time.Second, "every order has its e-mail and its call", func() error {
		if a, b := m.mails.orders(), p.calls.orders(); a != len(orders) || b != len(orders) {
			return fmt.Errorf("%d e-mails and %d calls of %d", a, b, len(orders))
		}
		return nil
	})
	s.restart()
	last := "F-last"
	deliver(s.t, s.hooks+"/hooks/flow", orderBody(last), nil)
	within(s.t, 60*time.Second, "the flow goes on", func() error {
		if keys, _ := p.calls.of(last); keys != 1 {
			return fmt.Errorf("%d calls", keys)
		}
		return nil
	})
	for _, o := range append(orders, last) {
		rows, err := s.ints("select count(*) from flow_tickets where order_id = $1", o)
		mails, sent := m.mails.of(o)
		calls, called := p.calls.of(o)
		if err != nil || rows != 1 || mails != 1 || calls != 1 {
			s.t.Errorf("order %s: %d rows (%v), %d Message-IDs in %d e-mails, %d Idempotency-Keys in %d calls; want 1 of each", o, rows, err, mails, sent, calls, called)
		}
	}
	s.t.Logf("repeated under the same key: %d e-mails, %d calls", m.mails.repeats(), p.calls.repeats())
}

// chargesSettled wants each order charged once, or waiting for a person who is
// told that it may have been; and all of them charged when the person says so.
func (s *shape) chargesSettled(p *postSink, orders []string) {
	s.t.Helper()
	var unknown map[string]bool
	within(s.t, 60*time.Second, "every charge is done or waits for a person", func() error {
		out, code := s.operate("dead", "list", "--group", "charge", "--limit", "0")
		dead, err := lines(out)
		if err != nil || code != 0 {
			return fmt.Errorf("exit %d, %v: %s", code, err, out)
		}
		unknown = map[string]bool{}
		for _, d := range dead {
			if d["reason"] != "unknown" || d["step"] != "charge" {
				return stop{fmt.Errorf("dead letter %v", d)}
			}
			unknown[d["key"].(string)] = true
		}
		open := 0
		for _, o := range orders {
			if keys, _ := p.charge.of(o); keys == 0 && !unknown["flow/"+o] {
				open++
			}
		}
		if open > 0 {
			return fmt.Errorf("%d orders are neither", open)
		}
		return nil
	})
	for _, o := range orders {
		if keys, times := p.charge.of(o); keys > 1 || times > 1 {
			s.t.Errorf("order %s was charged %d times under %d keys", o, times, keys)
		}
	}
	s.t.Logf("%d charges wait for a person", len(unknown))
	if len(unknown) == 0 {
		return
	}
	if out, code := s.operate("dead", "replay", "--group", "charge", "--unknown", "rerun", "--reason", "the target knows its keys"); code != 0 {
		s.t.Fatalf("dead replay: exit %d\n%s", code, out)
	}
	within(s.t, 60*time.Second, "what the person decided is charged", func() error {
		out, _ := s.operate("dead", "list", "--group", "charge")
		if dead, err := lines(out); err != nil || len(dead) > 0 {
			return fmt.Errorf("%v: %s", err, out)
		}
		for key := range unknown {
			if keys, _ := p.charge.of(key[len("flow/"):]); keys != 1 {
				return fmt.Errorf("%s has %d Idempotency-Keys", key, keys)
			}
		}
		return nil
	})
}

package guarantee

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// P6: whatever is down, a delivery is either safe and answered with success, or
// refused with a plea to come again; in the end each has its one effect.
func TestP6_WhateverIsDownNothingAcceptedIsLostOrRepeated(t *testing.T) {
	const room = 40
	s := newSplit(t, true)
	s.receiver.set("sources.shop.on_store_down=reject", "sources.shop.ack=confirm", fmt.Sprintf("store.max_outbox=%d", room))
	s.start()
	orders, shop := s.hooks+"/hooks/orders", s.hooks+"/hooks/shop"
	ids := orderIDs("D", 30+room)
	sent := 0
	take := func(n int) []string { sent += n; return ids[sent-n : sent] }

	t.Run("store down", func(t *testing.T) {
		for _, o := range take(10) {
			mustPost(t, orders, orderBody(o), nil)
		}
		s.redis.Kill()
		for _, o := range take(20) {
			mustPost(t, orders, orderBody(o), nil)
		}
		for _, o := range ids[5:15] { // the store cannot tell that they are known
			mustPost(t, orders, orderBody(o), nil)
		}
		comeAgain(t, shop, orderBody("shop-1"), "unavailable")
		s.waitRows(30*time.Second, 30, "select count(distinct order_id) from tickets")
	})
	t.Run("both down", func(t *testing.T) {
		s.broker.Stop()
		comeAgain(t, orders, orderBody(ids[sent]), "unavailable")
		comeAgain(t, shop, orderBody("shop-1"), "unavailable")
		if ready := s.readiness(t, http.StatusServiceUnavailable); !strings.Contains(ready, `"store"`) {
			t.Errorf("readiness %s", ready)
		}
	})
	t.Run("broker down, outbox full", func(t *testing.T) {
		s.redis.Start()
		if ready := s.readiness(t, http.StatusOK); !strings.Contains(ready, "events wait in the outbox") {
			t.Errorf("readiness %s", ready)
		}
		for range 2 { // claimed by the first, and no success before the confirm for either
			comeAgain(t, shop, orderBody("shop-1"), "unconfirmed")
		}
		for _, o := range take(room - 1) {
			deliver(t, orders, orderBody(o), nil)
		}
		comeAgain(t, orders, orderBody("one-too-many"), "outbox-full")
		for _, o := range ids[30:sent] {
			if a := mustPost(t, orders, orderBody(o), nil); !a.replayed {
				t.Errorf("order %s: %+v, want the first answer", o, a)
			}
		}
	})
	t.Run("both back", func(t *testing.T) {
		s.broker.Start()
		deliver(t, orders, orderBody("one-too-many"), nil)
		deliver(t, shop, orderBody("shop-1"), nil)
		s.exactlyOnce(sent + 2)
	})
}

// P6: a receiver that finds no store at its start publishes past it, and claims
// as soon as it is there.
func TestP6_AReceiverStartsWithoutItsStoreAndHeals(t *testing.T) {
	s := newSplit(t, false)
	s.receiver.set("startup_timeout=1s", "sources.shop.on_store_down=reject")
	s.redis.Kill()
	s.receiver.start()
	s.consumer.start()
	url := s.hooks + "/hooks/orders"
	if ready := s.readiness(t, http.StatusOK); !strings.Contains(ready, "degraded") || !strings.Contains(ready, "connect") {
		t.Errorf("readiness does not say why: %s", ready)
	}
	for range 2 {
		mustPost(t, url, orderBody("S-1"), nil)
	}
	comeAgain(t, s.hooks+"/hooks/shop", orderBody("S-2"), "unavailable")
	s.waitRows(20*time.Second, 1, "select count(*) from tickets")

	s.redis.Start()
	within(t, 20*time.Second, "deliveries are claimed", func() error {
		a, err := post(url, orderBody("S-1"), nil)
		if err == nil && !a.replayed {
			err = fmt.Errorf("answer %+v", a)
		}
		return err
	})
	if ready := s.readiness(t, http.StatusOK); strings.Contains(ready, "degraded") {
		t.Errorf("readiness after healing: %s", ready)
	}
	mustPost(t, s.hooks+"/hooks/shop", orderBody("S-2"), nil)
	s.exactlyOnce(2)

	// Without a broker there is nothing it could do.
	s.receiver.term()
	s.redis.Kill()
	if out, code := command(append([]string{"receiver", "--set", "broker.url=amqp://127.0.0.1:1/"}, s.receiver.args...)...); code != 1 ||
		!strings.Contains(out, "store did not answer within 1s") || !strings.Contains(out, "broker") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// set adds settings to a program's command line.
func (p *process) set(settings ...string) {
	for _, s := range settings {
		p.args = append(p.args, "--set", s)
	}
}

// comeAgain delivers and wants to be asked to come again.
func comeAgain(t *testing.T, url, body, problem string) {
	t.Helper()
	resp, err := client.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(b), problem) {
		t.Errorf("POST %s: %d, Retry-After %q, %s, %v; want 503 %s", url, resp.StatusCode, resp.Header.Get("Retry-After"), b, err, problem)
	}
}

// readiness waits until the receiver's readiness has a status, and is what it says.
func (s *shape) readiness(t *testing.T, status int) (text string) {
	t.Helper()
	within(t, 20*time.Second, fmt.Sprintf("readiness is %d", status), func() error {
		resp, err := client.Get(s.receiver.ready)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if text = string(b); err == nil && resp.StatusCode != status {
			err = fmt.Errorf("is %d: %s", resp.StatusCode, b)
		}
		return err
	})
	return text
}

package load_test

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestRows serves a moment of every kind of row, on as few stores as show that
// it works, and wants all of them in the table.
func TestRows(t *testing.T) {
	ctx := t.Context()
	chosen := rows(func(r row) bool {
		for _, other := range []string{"redis always", ": postgres", "duplicates: sqlite", "duplicates: redis", "whole path: sqlite"} {
			if strings.Contains(r.name, other) {
				return false
			}
		}
		return true
	})
	s, err := startServers(ctx, chosen)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var out bytes.Buffer
	p := plan{rounds: 1, length: 50 * time.Millisecond, warm: 50 * time.Millisecond, conns: 4}
	if err := table(ctx, &out, s, chosen, p); err != nil {
		t.Fatal(err)
	}
	for _, r := range chosen {
		if !strings.Contains(out.String(), r.name) {
			t.Errorf("no row %q in\n%s", r.name, &out)
		}
	}
}

// TestDrain drains a small outbox of each store.
func TestDrain(t *testing.T) {
	ctx := t.Context()
	s, err := startServers(ctx, drains())
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, r := range drains() {
		set, err := s.complete(r.set)
		if err != nil {
			t.Fatal(err)
		}
		set.Events = 300
		for _, kind := range []string{"fill", "raw", "drain"} {
			rate, _, err := runKind(ctx, set, kind)
			if err != nil || rate <= 0 {
				t.Errorf("%s %s: %v events a second: %v", kind, r.name, rate, err)
			}
			set.Keep = true
		}
	}
}

// TestConsume works off a small queue with every kind of consumer.
func TestConsume(t *testing.T) {
	ctx := t.Context()
	list := consumptions()
	var chosen []row
	for _, c := range list {
		chosen = append(chosen, row{name: c.name, set: c.set})
	}
	s, err := startServers(ctx, chosen)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var out bytes.Buffer
	if err := consumeTable(ctx, &out, s, list, 1, 300); err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if !strings.Contains(out.String(), c.name) {
			t.Errorf("no row %q in\n%s", c.name, &out)
		}
	}
}

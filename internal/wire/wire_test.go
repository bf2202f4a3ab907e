package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/wire"
)

func instants() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(1, 1<<33).Draw(t, "sec"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
	})
}

func deliveries() *rapid.Generator[wire.Delivery] {
	return rapid.Custom(func(t *rapid.T) wire.Delivery {
		d := wire.Delivery{
			Event: hookonce.Event{
				Key: hookonce.Key{
					Source: rapid.StringMatching(`[a-z][a-z0-9-]{0,20}`).Draw(t, "source"),
					ID:     string(rapid.SliceOfN(rapid.Byte(), 1, 400).Draw(t, "id")),
				},
				Type:        rapid.StringN(1, 60, 300).Draw(t, "type"),
				ContentType: rapid.StringN(0, 60, 255).Draw(t, "content type"),
				Body:        rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
				Header:      rapid.MapOfN(rapid.StringN(1, 20, 60), rapid.StringN(0, 40, 120), 0, 8).Draw(t, "header"),
				ReceivedAt:  instants().Draw(t, "received"),
				Unmatched:   rapid.SampledFrom([]string{"", "drop"}).Draw(t, "unmatched"),
				Parked:      rapid.SampledFrom([]string{"", "no key"}).Draw(t, "parked"),
				TraceParent: rapid.SampledFrom([]string{"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}).Draw(t, "trace"),
			},
			Attempt:    rapid.IntRange(0, 1000).Draw(t, "attempt"),
			Generation: rapid.IntRange(0, 1000).Draw(t, "generation"),
			Run:        rapid.IntRange(0, 1000).Draw(t, "run"),
			Rerouted:   rapid.Bool().Draw(t, "rerouted"),
			DeadCopy:   rapid.Bool().Draw(t, "dead"),
		}
		if rapid.Bool().Draw(t, "delayed") {
			d.Due = instants().Draw(t, "due")
			d.UnmatchedSince = instants().Draw(t, "unmatched since")
		}
		if d.DeadCopy {
			d.Reason = rapid.SampledFrom([]string{"", "failed", "permanent"}).Draw(t, "reason")
		}
		if rapid.Bool().Draw(t, "split") {
			d.Context = []byte(`{"entry":"` + rapid.StringMatching(`[a-z]{0,9}`).Draw(t, "entry") + `"}`)
		}
		return d
	})
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := deliveries().Draw(t, "delivery")
		m := wire.Encode(d)
		if m.MessageID != d.Key.MessageID() || m.Type != hookonce.EscapeType(d.Type) || m.AppID != "hookonce" {
			t.Fatalf("properties: %+v", m)
		}
		got, err := wire.Decode(m)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestHeaders(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	m := wire.Encode(wire.Delivery{
		Event: hookonce.Event{
			Key: hookonce.Key{Source: "shop", ID: "A-1"}, Type: "order paid", ReceivedAt: at,
			Header: map[string]string{"X-Id": "7"}, Context: []byte(`{"a":1}`), Unmatched: "drop", Parked: "no key",
			ContentType: strings.Repeat("x", 256),
		},
		Attempt: 3, Generation: 2, Run: 1, Due: at, Rerouted: true, DeadCopy: true, Reason: "failed",
	})
	want := map[string]any{
		"hookonce-key": "shop/A-1", "hookonce-source": "shop", "hookonce-type": "order paid",
		"hookonce-received-at": "2026-03-04T05:06:07.000000089Z", "hookonce-due": "2026-03-04T05:06:07.000000089Z",
		"hookonce-attempt": int64(3), "hookonce-generation": int64(2), "hookonce-run": int64(1),
		"hookonce-context": `{"a":1}`, "hookonce-headers": `{"X-Id":"7"}`, "hookonce-unmatched": "drop",
		"hookonce-parked": "no key", "hookonce-rerouted": int64(1), "hookonce-dead": "failed",
	}
	if diff := cmp.Diff(want, m.Headers); diff != "" {
		t.Error(diff)
	}
	if m.Type != "order_20paid" || m.MessageID != "shop/A-1" || !m.Timestamp.Equal(at) || m.ContentType != "" {
		t.Errorf("properties: %+v", m)
	}
	plain := wire.Encode(wire.Delivery{Event: hookonce.Event{Key: hookonce.Key{Source: "s", ID: "1"}}})
	for _, absent := range []string{wire.HeaderDue, wire.HeaderRun, wire.HeaderDead, wire.HeaderParked, wire.HeaderRerouted, wire.HeaderUnmatched} {
		if v, ok := plain.Headers[absent]; ok {
			t.Errorf("plain message has %s = %v", absent, v)
		}
	}
}

func TestDecodeIdentity(t *testing.T) {
	long := strings.Repeat("k", 300)
	cases := []struct {
		name    string
		m       wire.Message
		want    hookonce.Key
		invalid bool
	}{
		{name: "foreign", m: wire.Message{MessageID: "order-1"}, want: hookonce.Key{Source: "-", ID: "order-1"}},
		{name: "foreign with a slash", m: wire.Message{MessageID: "shop/1"}, want: hookonce.Key{Source: "-", ID: "shop/1"}},
		{name: "foreign with a source", m: wire.Message{MessageID: "1", Headers: map[string]any{"hookonce-source": "shop"}}, want: hookonce.Key{Source: "shop", ID: "1"}},
		{name: "ours without the key header", m: wire.Message{MessageID: "shop/1", Headers: map[string]any{"hookonce-source": []byte("shop")}}, want: hookonce.Key{Source: "shop", ID: "1"}},
		{name: "key header alone", m: wire.Message{Headers: map[string]any{"hookonce-key": "shop/a/b%2F"}}, want: hookonce.Key{Source: "shop", ID: "a/b%2F"}},
		{name: "full key wins over its short form", m: wire.Message{MessageID: "shop/kkk~12", Headers: map[string]any{"hookonce-key": "shop/" + long, "hookonce-source": "shop"}}, want: hookonce.Key{Source: "shop", ID: long}},
		{name: "nothing", m: wire.Message{}, invalid: true},
		{name: "source alone", m: wire.Message{Headers: map[string]any{"hookonce-source": "shop"}}, invalid: true},
		{name: "contradiction", m: wire.Message{MessageID: "x", Headers: map[string]any{"hookonce-source": "shop", "hookonce-key": "bank/1"}}, invalid: true},
		{name: "no id in the key", m: wire.Message{MessageID: "x", Headers: map[string]any{"hookonce-key": "shop/"}}, invalid: true},
		{name: "slash in the source", m: wire.Message{MessageID: "x", Headers: map[string]any{"hookonce-source": "a/b"}}, invalid: true},
		{name: "too long", m: wire.Message{Headers: map[string]any{"hookonce-key": "s/" + strings.Repeat("k", hookonce.MaxKey+1)}}, invalid: true},
		{name: "key of another kind", m: wire.Message{MessageID: "x", Headers: map[string]any{"hookonce-key": []any{1}}}, want: hookonce.Key{Source: "-", ID: "x"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.m.Body = []byte("body")
			c.m.Type = "order.paid"
			d, err := wire.Decode(c.m)
			if c.invalid != errors.Is(err, wire.ErrIdentity) {
				t.Fatalf("error %v, invalid %v", err, c.invalid)
			}
			if d.Key != c.want || string(d.Body) != "body" || d.Type != "order.paid" {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestEncodeBounds(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	m := wire.Encode(wire.Delivery{
		Event: hookonce.Event{
			Key: hookonce.Key{Source: "s", ID: strings.Repeat("k", hookonce.MaxKey)}, Type: huge, Parked: huge, TraceParent: huge,
			ContentType: huge, Context: []byte(huge), Header: map[string]string{"A": huge},
		},
		DeadCopy: true, Reason: huge,
	})
	size := 0
	for name, v := range m.Headers {
		s, _ := v.(string)
		size += len(name) + len(s)
	}
	if size > 48<<10 || len(m.MessageID) > 255 || len(m.Type) > 128 {
		t.Errorf("headers of %d bytes, id %d, type %d", size, len(m.MessageID), len(m.Type))
	}
	d, err := wire.Decode(m)
	if err != nil || d.Type != hookonce.EscapeType(huge) || d.Parked == "" || !d.DeadCopy {
		t.Errorf("decoded type of %d bytes, parked %t: %v", len(d.Type), d.Parked != "", err)
	}
}

func TestDecodeTolerates(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, n := range []any{int32(7), int64(7), int16(7), int8(7), uint8(7), 7, float64(7), float32(7), "7", []byte("7"), uint64(7)} {
		d, err := wire.Decode(wire.Message{MessageID: "1", Headers: map[string]any{
			"hookonce-attempt": n, "hookonce-generation": n, "hookonce-run": n, "hookonce-rerouted": n, "hookonce-dead": n,
		}})
		if err != nil || d.Attempt != 7 || d.Generation != 7 || d.Run != 7 || !d.Rerouted || !d.DeadCopy {
			t.Errorf("%T: %+v, %v", n, d, err)
		}
	}
	for _, n := range []any{nil, int32(-1), "x", 1.5, []any{}, int64(1 << 40)} {
		if d, _ := wire.Decode(wire.Message{MessageID: "1", Headers: map[string]any{"hookonce-attempt": n}}); d.Attempt != 0 {
			t.Errorf("%v: attempt %d", n, d.Attempt)
		}
	}
	for _, v := range []any{at, at.Format(time.RFC3339Nano), []byte(at.Format(time.RFC3339))} {
		d, _ := wire.Decode(wire.Message{MessageID: "1", Headers: map[string]any{"hookonce-received-at": v, "hookonce-due": v}})
		if !d.ReceivedAt.Equal(at) || !d.Due.Equal(at) {
			t.Errorf("%T: %v, %v", v, d.ReceivedAt, d.Due)
		}
	}
	d, _ := wire.Decode(wire.Message{MessageID: "1", Timestamp: at, Headers: map[string]any{
		"hookonce-received-at": "yesterday", "hookonce-headers": "[1]", "hookonce-context": "{", "hookonce-rerouted": "0", "hookonce-dead": false,
	}})
	if !d.ReceivedAt.Equal(at) || d.Header != nil || d.Context != nil || d.Rerouted || d.DeadCopy || d.Type != "unknown" {
		t.Errorf("broken headers: %+v", d)
	}
}

func TestCapHeaders(t *testing.T) {
	h := map[string]string{"A": "1", "B": strings.Repeat("x", wire.MaxHeaders), "C": "3"}
	for i := range 100 {
		h[fmt.Sprintf("D%03d", i)] = strings.Repeat("y", 100)
	}
	kept, dropped := wire.CapHeaders(h)
	if kept["A"] != "1" || kept["C"] != "3" || kept["B"] != "" || dropped == 0 || len(kept)+dropped != len(h) {
		t.Errorf("kept %d, dropped %d of %d", len(kept), dropped, len(h))
	}
	m := wire.Encode(wire.Delivery{Event: hookonce.Event{Key: hookonce.Key{Source: "s", ID: "1"}, Header: h}})
	sent, _ := m.Headers[wire.HeaderHeaders].(string)
	if len(sent) > wire.MaxHeaders || len(sent) < wire.MaxHeaders*9/10 || !json.Valid([]byte(sent)) {
		t.Errorf("sent %d bytes", len(sent))
	}
	small := map[string]string{"A": "1"}
	if kept, dropped := wire.CapHeaders(small); dropped != 0 || len(kept) != 1 {
		t.Errorf("small: %v, %d", kept, dropped)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add("shop/1", "order.paid", "shop/1", "shop", "2026-01-02T03:04:05Z", "3", `{"a":"b"}`, []byte("body"), byte(0))
	f.Add("", "", "", "", "", "", "", []byte(nil), byte(1))
	f.Fuzz(func(t *testing.T, id, typ, key, source, at, n, headers string, body []byte, kind byte) {
		var number any = n
		switch kind % 4 {
		case 1:
			number = []byte(n)
		case 2:
			number = int64(len(n)) - 3
		case 3:
			number = []any{n}
		}
		m := wire.Message{MessageID: id, Type: typ, Body: body, Headers: map[string]any{
			"hookonce-key": key, "hookonce-source": source, "hookonce-received-at": at, "hookonce-due": at,
			"hookonce-attempt": number, "hookonce-generation": number, "hookonce-run": number, "hookonce-dead": number,
			"hookonce-headers": headers, "hookonce-context": headers, "hookonce-rerouted": number,
		}}
		d, err := wire.Decode(m)
		if !bytes.Equal(d.Body, body) {
			t.Fatal("the body is not as it was")
		}
		if err != nil {
			if d.Key != (hookonce.Key{}) {
				t.Fatalf("invalid, but with key %q", d.Key)
			}
			return
		}
		if d.Key.Source == "" || d.Key.ID == "" || d.Attempt < 0 || d.Type == "" {
			t.Fatalf("decoded %+v", d)
		}
		again, err := wire.Decode(wire.Encode(d))
		if err != nil || again.Key != d.Key || again.Type != d.Type || again.Attempt != d.Attempt {
			t.Fatalf("again: %+v, %v; first %+v", again, err, d)
		}
	})
}

package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/wire"
)

func withHeaders(h map[string]string) wire.Delivery {
	return wire.Delivery{Event: hookonce.Event{Key: hookonce.Key{Source: "shop", ID: "1"}, Type: "order.paid", Header: h}}
}

// TestHeadersAreWhatTheLibraryWrites compares with encoding/json.
func TestHeadersAreWhatTheLibraryWrites(t *testing.T) {
	for _, h := range []map[string]string{
		{"Accept": "*/*"},
		{"B": "2", "A": "1", "C": ""},
		{"X": "quote \" back \\ <tag> & \u2028 \u00e9 \x00 \x7f \xff end"},
		{"Na\"me": "v", "\u00e9": "v"},
	} {
		want, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		m := wire.Encode(withHeaders(h))
		if got := m.Headers[wire.HeaderHeaders]; got != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	d := withHeaders(map[string]string{
		"Content-Type": "application/json", "User-Agent": "Example/1.0 (+https://example.com/webhooks)", "Accept": "*/*",
	})
	b.ReportAllocs()
	for b.Loop() {
		wire.Encode(d)
	}
}

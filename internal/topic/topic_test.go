package topic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/topic"
)

func TestMatch(t *testing.T) {
	cases := []struct {
		pattern, topic string
		want           bool
	}{
		{"#", "stripe.charge.refunded", true},
		{"#", "", true},
		{"*", "", false},
		{"*", "stripe", true},
		{"*", "stripe.charge", false},
		{"stripe.#", "stripe", true},
		{"stripe.#", "stripe.charge", true},
		{"stripe.#", "stripe.charge.refunded", true},
		{"stripe.#", "stripe2.charge", false},
		{"stripe.charge", "stripe.charge", true},
		{"stripe.charge", "stripe.charges", false},
		{"stripe.charges", "stripe.charge", false},
		{"*.order.paid", "shop.order.paid", true},
		{"*.order.paid", "order.paid", false},
		{"#.paid", "shop.order.paid", true},
		{"#.paid", "paid", true},
		{"#.paid", "shop.paid.later", false},
		{"#.a.#.b", "a.b.a.b", true},
		{"#.a.#.b", "b.a", false},
		{"a.#.*", "a", false},
		{"a.#.*", "a.b", true},
		{"a.*.#", "a", false},
		{"#.#", "a", true},
		{"a..b", "a..b", true},
		{"a.*.b", "a..b", true},
		{"a.", "a.", true},
		{"a.*", "a.", true},
		{"a.#", "a.", true},
		{"a", "a.", false},
		{"demo.order.paid", "demo.order_2epaid", false},
	}
	for _, c := range cases {
		p, err := topic.Parse(c.pattern)
		if err != nil {
			t.Fatalf("Parse(%q): %v", c.pattern, err)
		}
		if got := p.Match(c.topic); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.topic, got, c.want)
		}
		if p.String() != c.pattern {
			t.Errorf("String() = %q, want %q", p, c.pattern)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, bad := range []string{"", "order*", "stripe.#x", "a b", "a\n", "a.**", strings.Repeat("a", 256)} {
		if _, err := topic.Parse(bad); !errors.Is(err, topic.ErrBadPattern) {
			t.Errorf("Parse(%q) = %v, want ErrBadPattern", bad, err)
		}
	}
	if _, err := topic.Parse(strings.Repeat("a", 255)); err != nil {
		t.Errorf("255 bytes: %v", err)
	}
}

func TestZeroPatternMatchesNoEvent(t *testing.T) {
	if (topic.Pattern{}).Match("demo.order.paid") {
		t.Error("the zero pattern matched an event")
	}
}

// naive is the definition, word by word.
func naive(pattern, words []string) bool {
	if len(pattern) == 0 {
		return len(words) == 0
	}
	if pattern[0] == "#" {
		return naive(pattern[1:], words) || len(words) > 0 && naive(pattern, words[1:])
	}
	return len(words) > 0 && (pattern[0] == "*" || pattern[0] == words[0]) && naive(pattern[1:], words[1:])
}

func FuzzMatch(f *testing.F) {
	f.Add("#.a.*.#", "b.a.c")
	f.Add("a..#", "a.")
	f.Add("*.*", ".")
	f.Add("#.#.a", "a.a.a")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		p, err := topic.Parse(pattern)
		if err != nil || len(pattern) > 24 || len(name) > 24 {
			return // the definition takes exponential time
		}
		var words []string
		if name != "" {
			words = strings.Split(name, ".")
		}
		if got, want := p.Match(name), naive(strings.Split(pattern, "."), words); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	p, err := topic.Parse("#.order.*")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p.Match("shop.order.line.order.paid")
	}
}

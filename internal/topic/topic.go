// Package topic matches event topics (<source>.<type>) against subscription
// patterns, by the rules of an AMQP topic exchange, so that the broker and this
// code always agree about who wants an event.
//
// A topic is words parted by dots. In a pattern "*" stands for exactly one word
// and "#" for any number of them, none included: "stripe.#" matches "stripe"
// as well as "stripe.charge.refunded", "*.order.paid" matches "shop.order.paid"
// alone.
package topic

import (
	"errors"
	"fmt"
	"strings"
)

// MaxPattern is the longest pattern, in bytes: AMQP's short string.
const MaxPattern = 255

// ErrBadPattern says that a text is no pattern; the wrapping error says why.
var ErrBadPattern = errors.New("not a topic pattern")

// Pattern is a parsed subscription pattern. The zero value matches the empty
// topic only, which no event has.
type Pattern struct {
	text  string
	words []string
}

// Parse reads a pattern. It refuses, with [ErrBadPattern], what could never
// match as meant: an empty or too long text, white space or control bytes, and
// a wildcard that is only part of a word ("order*"), which AMQP takes literally.
func Parse(pattern string) (Pattern, error) {
	switch {
	case pattern == "":
		return Pattern{}, fmt.Errorf("%w: empty; use # for everything", ErrBadPattern)
	case len(pattern) > MaxPattern:
		return Pattern{}, fmt.Errorf("%w: %d bytes, at most %d", ErrBadPattern, len(pattern), MaxPattern)
	}
	for i := 0; i < len(pattern); i++ {
		if pattern[i] <= ' ' || pattern[i] == 0x7f {
			return Pattern{}, fmt.Errorf("%w: %q has white space or a control byte", ErrBadPattern, pattern)
		}
	}
	words := strings.Split(pattern, ".")
	for _, w := range words {
		if len(w) > 1 && strings.ContainsAny(w, "*#") {
			return Pattern{}, fmt.Errorf("%w: %q: * and # stand for whole words between dots, not inside %q",
				ErrBadPattern, pattern, w)
		}
	}
	return Pattern{text: pattern, words: words}, nil
}

// String is the pattern as written; it is also the broker's binding key.
func (p Pattern) String() string { return p.text }

// Match reports whether a topic matches.
func (p Pattern) Match(topic string) bool {
	// The usual matcher with one point of return: a later "#" makes an earlier
	// one's choice irrelevant, so only the last needs to be widened.
	rest, more := topic, topic != ""
	at := 0
	back, backRest := -1, ""
	for more {
		switch {
		case at < len(p.words) && p.words[at] == "#":
			at++
			back, backRest = at, rest
			continue
		case at < len(p.words) && matchWord(p.words[at], rest):
			at++
			rest, more = next(rest)
			continue
		case back < 0:
			return false
		}
		// Let the last "#" take one word more.
		at = back
		backRest, more = next(backRest)
		rest = backRest
	}
	for at < len(p.words) && p.words[at] == "#" {
		at++
	}
	return at == len(p.words)
}

// matchWord compares a pattern word with the first word of rest.
func matchWord(word, rest string) bool {
	if word == "*" {
		return true
	}
	return strings.HasPrefix(rest, word) && (len(rest) == len(word) || rest[len(word)] == '.')
}

// next drops the first word of rest and reports whether another one follows;
// that may be the empty one after a final dot.
func next(rest string) (string, bool) {
	_, after, found := strings.Cut(rest, ".")
	return after, found
}

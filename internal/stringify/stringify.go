// Package stringify writes a JSON document as JavaScript's
// JSON.stringify(JSON.parse(text)) does. Guards written in Node that hash a
// parsed body hash these bytes, so whoever takes their keys over needs them.
//
// What differs from the text itself: white space goes; of a name that occurs
// twice the last value stands in the first one's place; names that are array
// indexes come first, in their order; numbers are written as doubles, shortest
// first; strings keep only the escapes that they need.
package stringify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting that is followed.
const maxDepth = 1000

var errDepth = fmt.Errorf("JSON nested deeper than %d", maxDepth)

// JSON rewrites one document. The error says why text is not one.
func JSON(text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON document")
	}
	return appendValue(make([]byte, 0, len(raw)), &cursor{text: raw}, 0)
}

// cursor reads a text that is known to be JSON.
type cursor struct {
	text []byte
	at   int
}

func (c *cursor) skipSpace() {
	for c.at < len(c.text) && strings.IndexByte(" \t\r\n", c.text[c.at]) >= 0 {
		c.at++
	}
}

// next is the byte behind white space.
func (c *cursor) next() byte {
	c.skipSpace()
	return c.text[c.at]
}

// literal takes a string with its quotes.
func (c *cursor) literal() []byte {
	from := c.at
	for c.at++; c.text[c.at] != '"'; c.at++ {
		if c.text[c.at] == '\\' {
			c.at++
		}
	}
	c.at++
	return c.text[from:c.at]
}

// word takes a number, true, false or null.
func (c *cursor) word() string {
	from := c.at
	for c.at < len(c.text) && strings.IndexByte(" \t\r\n,]}", c.text[c.at]) < 0 {
		c.at++
	}
	return string(c.text[from:c.at])
}

func appendValue(out []byte, c *cursor, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	switch b := c.next(); b {
	case '{':
		return appendObject(out, c, depth)
	case '[':
		return appendArray(out, c, depth)
	case '"':
		return appendString(out, c.literal()), nil
	case 't', 'f', 'n':
		return append(out, c.word()...), nil
	default:
		return appendNumber(out, c.word()), nil
	}
}

func appendArray(out []byte, c *cursor, depth int) ([]byte, error) {
	out = append(out, '[')
	for c.at++; c.next() != ']'; {
		var err error
		if out, err = appendValue(out, c, depth+1); err != nil {
			return nil, err
		}
		if c.next() == ',' {
			out = append(out, ',')
			c.at++
		}
	}
	c.at++
	return append(out, ']'), nil
}

// member is one name of an object with its value, both rewritten.
type member struct {
	name, value []byte
	index       uint64 // of a name that is an array index
	indexed     bool
}

func appendObject(out []byte, c *cursor, depth int) ([]byte, error) {
	var members []member
	places := map[string]int{}
	for c.at++; c.next() != '}'; {
		name := appendString(nil, c.literal())
		c.next()
		c.at++ // the colon
		value, err := appendValue(nil, c, depth+1)
		if err != nil {
			return nil, err
		}
		if at, twice := places[string(name)]; twice {
			members[at].value = value
		} else {
			places[string(name)] = len(members)
			m := member{name: name, value: value}
			m.index, m.indexed = arrayIndex(name)
			members = append(members, m)
		}
		if c.next() == ',' {
			c.at++
		}
	}
	c.at++
	slices.SortStableFunc(members, func(a, b member) int {
		switch {
		case a.indexed && b.indexed:
			return int(int64(a.index) - int64(b.index)) // both below 1<<32
		case a.indexed:
			return -1
		case b.indexed:
			return 1
		}
		return 0
	})
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, m.name...), ':'), m.value...)
	}
	return append(out, '}'), nil
}

// arrayIndex reads a quoted name that JavaScript takes for an array index: the
// plain decimal form of a number below 2^32 - 1.
func arrayIndex(quoted []byte) (uint64, bool) {
	name := string(quoted[1 : len(quoted)-1])
	n, err := strconv.ParseUint(name, 10, 64)
	if err != nil || n >= math.MaxUint32 || strconv.FormatUint(n, 10) != name {
		return 0, false
	}
	return n, true
}

// appendNumber writes a number as JavaScript does: what a double cannot hold is
// null, and negative zero has no sign.
func appendNumber(out []byte, text string) []byte {
	f, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil && math.IsInf(f, 0):
		return append(out, "null"...)
	case f == 0:
		return append(out, '0')
	}
	abs := math.Abs(f)
	if abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	// Go writes two digits of an exponent, JavaScript as many as needed.
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	digits := strings.TrimLeft(exponent[1:], "0")
	return append(out, mantissa+"e"+exponent[:1]+digits...)
}

// appendString writes a string literal with the escapes of JSON.stringify: half
// a surrogate pair stays an escape, everything else above space is itself.
func appendString(out, quoted []byte) []byte {
	out = append(out, '"')
	text := quoted[1 : len(quoted)-1]
	for i := 0; i < len(text); {
		if text[i] != '\\' {
			r, size := utf8.DecodeRune(text[i:])
			out = utf8.AppendRune(out, r) // broken UTF-8 is U+FFFD to JavaScript too
			i += size
			continue
		}
		if text[i+1] != 'u' {
			out = appendChar(out, unescape(text[i+1]))
			i += 2
			continue
		}
		r := hex4(text[i+2:])
		i += 6
		if utf16.IsSurrogate(r) && i+6 <= len(text) && text[i] == '\\' && text[i+1] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(text[i+2:])); pair != utf8.RuneError {
				out = utf8.AppendRune(out, pair)
				i += 6
				continue
			}
		}
		out = appendChar(out, r)
	}
	return append(out, '"')
}

func unescape(b byte) rune {
	switch b {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return rune(b) // a quote, a slash or a backslash
}

func appendChar(out []byte, r rune) []byte {
	const short = "\b\f\n\r\t\"\\"
	if i := strings.IndexRune(short, r); i >= 0 && r < utf8.RuneSelf {
		return append(out, '\\', `bfnrt"\`[i])
	}
	if r < ' ' || utf16.IsSurrogate(r) {
		return fmt.Appendf(out, `\u%04x`, r)
	}
	return utf8.AppendRune(out, r)
}

func hex4(digits []byte) rune {
	n, err := strconv.ParseUint(string(digits[:4]), 16, 32)
	if err != nil {
		return utf8.RuneError // json has seen to the digits
	}
	return rune(n)
}

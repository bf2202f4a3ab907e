package jsonpath

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxDepth is how deep objects and arrays may be nested.
const MaxDepth = 512

var (
	// ErrSyntax says that bytes are not exactly one JSON document in UTF-8.
	ErrSyntax = errors.New("not valid JSON")
	// ErrDepth says that a document is nested deeper than [MaxDepth].
	ErrDepth = errors.New("JSON nested too deep")
	// ErrDuplicate says that an object has a name twice.
	ErrDuplicate = errors.New("JSON object with a name that occurs twice")
)

// Valid tells whether doc is one JSON document (RFC 8259) in valid UTF-8 with
// nothing behind it, nested at most [MaxDepth] deep. The error wraps
// [ErrSyntax] or [ErrDepth] and names the byte, never the content.
func Valid(doc []byte) error { return valid(doc, false) }

// ValidUnique is [Valid] and refuses also objects, at any depth, that have a
// name twice (spellings with escapes included): parsers disagree about what
// such a document says. That error wraps [ErrDuplicate].
func ValidUnique(doc []byte) error { return valid(doc, true) }

func valid(doc []byte, unique bool) error {
	inner := content(doc)
	if !utf8.Valid(inner) {
		return fmt.Errorf("%w: not UTF-8", ErrSyntax)
	}
	s := scanner{doc: inner, unique: unique}
	err := s.value(0)
	if err == nil && s.pos != len(inner) {
		err = s.wrong("one document only")
	}
	return err
}

// scanner walks over a document once.
type scanner struct {
	doc    []byte
	pos    int
	unique bool
	names  [][]byte // members of the objects that are open, outer ones first
}

func (s *scanner) wrong(want string) error {
	return fmt.Errorf("%w: %s expected at byte %d", ErrSyntax, want, s.pos)
}

// peek is the byte at the position; 0, which is nowhere allowed, at the end.
func (s *scanner) peek() byte {
	if s.pos < len(s.doc) {
		return s.doc[s.pos]
	}
	return 0
}

func (s *scanner) space() {
	for s.pos < len(s.doc) {
		switch s.doc[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) value(depth int) error {
	switch c := s.peek(); c {
	case '{', '[':
		if depth == MaxDepth {
			return fmt.Errorf("%w: more than %d levels at byte %d", ErrDepth, MaxDepth, s.pos)
		}
		if c == '{' {
			return s.object(depth + 1)
		}
		return s.array(depth + 1)
	case '"':
		_, err := s.text()
		return err
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		return s.number()
	}
}

func (s *scanner) object(depth int) error {
	s.pos++
	s.space()
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	names := nameSet{scanner: s, from: len(s.names)}
	for {
		if err := names.member(depth); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case '}':
			s.pos++
			s.names = s.names[:names.from]
			return nil
		default:
			return s.wrong("comma or }")
		}
	}
}

func (s *scanner) array(depth int) error {
	s.pos++
	s.space()
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.pos++
			s.space()
		case ']':
			s.pos++
			return nil
		default:
			return s.wrong("comma or ]")
		}
	}
}

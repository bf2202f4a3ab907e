package jsonpath

import "bytes"

// text passes over a string and returns it with its quotes.
func (s *scanner) text() ([]byte, error) {
	start := s.pos
	if s.peek() != '"' {
		return nil, s.wrong("string")
	}
	s.pos++
	for s.pos < len(s.doc) {
		switch c := s.doc[s.pos]; {
		case c == '"':
			s.pos++
			return s.doc[start:s.pos], nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.wrong("no control character")
		default:
			s.pos++
		}
	}
	return nil, s.wrong("end of string")
}

// escape passes over a backslash and what belongs to it.
func (s *scanner) escape() error {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return nil
	case 'u':
		s.pos++
		for range 4 {
			if c := s.peek(); (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return s.wrong("hexadecimal digit")
			}
			s.pos++
		}
		return nil
	default:
		return s.wrong("escape")
	}
}

func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.doc[s.pos:], []byte(word)) {
		return s.wrong(word)
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		return s.wrong("value")
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return s.wrong("digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return s.wrong("digit")
		}
	}
	return nil
}

// digits passes over digits and tells whether there was one.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.doc) && s.doc[s.pos] >= '0' && s.doc[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}

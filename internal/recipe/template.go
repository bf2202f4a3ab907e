package recipe

import (
	"fmt"
	"strings"
)

// parse reads a template; parts without a prefix of their own are of kind k.
func (r *Recipe) parse(k kind, s string) error {
	wrong := func(why string) error { return fmt.Errorf("%w: %q: %s", ErrRecipe, r.text, why) }
	for s != "" {
		open := strings.IndexByte(s, '{')
		if open < 0 {
			open = len(s)
		}
		literal := s[:open]
		if strings.IndexByte(literal, '}') >= 0 {
			return wrong("a } without {")
		}
		for i := range len(literal) {
			if c := literal[i]; !plainByte(c) && strings.IndexByte(r.special, c) < 0 {
				r.special += string(rune(c))
			}
			if literal[i] >= 0x80 {
				return wrong("use ASCII between the parts")
			}
		}
		if open == len(s) {
			r.parts = append(r.parts, part{literal: literal})
			break
		}
		if len(r.parts) > 0 && !separates(literal) {
			return wrong("put a separator such as : between two parts, so that their values cannot run together")
		}
		end := strings.IndexByte(s[open:], '}')
		if end < 0 {
			return wrong("a { without }")
		}
		p, err := templatePart(k, s[open+1:open+end])
		if err != nil {
			return wrong(err.Error())
		}
		p.literal = literal
		r.parts = append(r.parts, p)
		s = s[open+end+1:]
	}
	return nil
}

// templatePart reads what stands between braces.
func templatePart(k kind, s string) (part, error) {
	if prefix, rest, ok := strings.Cut(s, ":"); ok {
		if own, known := named[prefix]; known {
			k, s = own, rest
		}
	}
	if s == "" {
		return part{}, fmt.Errorf("empty braces")
	}
	return newPart(k, s)
}

// plainByte tells whether c cannot separate: it may be part of an escape.
func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '%'
}

// separates tells whether the literal has a byte that no escaped value has.
func separates(literal string) bool {
	for i := range len(literal) {
		if !plainByte(literal[i]) {
			return true
		}
	}
	return false
}

// appendEscaped appends a value of a template.
func (r *Recipe) appendEscaped(to []byte, value string) []byte {
	const upper = "0123456789ABCDEF"
	for i := range len(value) {
		c := value[i]
		if c == '%' || c == ':' || strings.IndexByte(r.special, c) >= 0 {
			to = append(to, '%', upper[c>>4], upper[c&15])
			continue
		}
		to = append(to, c)
	}
	return to
}

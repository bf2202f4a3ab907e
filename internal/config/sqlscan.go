package config

import "strings"

// sqlText is what a statement's text tells without knowing SQL.
type sqlText struct {
	names    []string // :name, in order, with repeats
	numbered string   // the first $1, which effects do not take
	second   bool     // more than one statement
	empty    bool     // nothing but space and comments
}

// scanSQL finds the named parameters of a statement, leaving out what stands
// in quotes, comments and dollar quotes, and casts (::text).
func scanSQL(text string) sqlText {
	s := sqlText{empty: true}
	ended := false
	for i := 0; i < len(text); {
		rest, c := text[i:], text[i]
		n, blank := skipSQL(text, i)
		switch {
		case n > 0:
		case c == ';':
			n, blank, ended = 1, true, !s.empty
		case c == ':' && len(rest) > 1 && letter(rest[1]):
			n = 1 + wordLen(rest[1:])
			s.names = append(s.names, rest[1:n])
		case c == '$' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9' && (i == 0 || !wordByte(text[i-1])):
			n = 1 + wordLen(rest[1:])
			if s.numbered == "" {
				s.numbered = rest[:n]
			}
		default:
			n, blank = 1, c <= ' '
		}
		if !blank {
			s.second = s.second || ended
			s.empty = false
		}
		i += n
	}
	return s
}

// skipSQL is the length of a quoted text, comment or cast that begins at i, 0
// where none does. blank tells a comment.
func skipSQL(text string, i int) (n int, blank bool) {
	rest := text[i:]
	switch c := rest[0]; {
	case c == '\'' || c == '"' || c == '`':
		escapes := c == '\'' && i > 0 && (text[i-1]|0x20) == 'e' && (i == 1 || !wordByte(text[i-2]))
		return quotedLen(rest, escapes), false
	case strings.HasPrefix(rest, "--"):
		return endOf(rest, "\n", 2), true
	case strings.HasPrefix(rest, "/*"):
		return commentLen(rest), true
	case strings.HasPrefix(rest, "::"):
		return 2, false
	case c == '$' && (i == 0 || !wordByte(text[i-1])):
		tag := 1
		if len(rest) > 1 && letter(rest[1]) {
			tag += wordLen(rest[1:])
		}
		if tag < len(rest) && rest[tag] == '$' {
			return endOf(rest, rest[:tag+1], tag+1), false
		}
	}
	return 0, false
}

// quotedLen is the length of the quoted text that rest begins with; a doubled
// quote stands for itself.
func quotedLen(rest string, escapes bool) int {
	for i := 1; i < len(rest); i++ {
		switch {
		case escapes && rest[i] == '\\':
			i++
		case rest[i] != rest[0]:
		case i+1 < len(rest) && rest[i+1] == rest[0]:
			i++
		default:
			return i + 1
		}
	}
	return len(rest)
}

// endOf is the length of rest up to and with the first end behind from.
func endOf(rest, end string, from int) int {
	if i := strings.Index(rest[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(rest)
}

// commentLen is the length of a block comment; they nest.
func commentLen(rest string) int {
	depth := 0
	for i := 0; i+1 < len(rest); i++ {
		switch rest[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(rest)
}

func letter(c byte) bool   { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func wordByte(c byte) bool { return letter(c) || c >= '0' && c <= '9' }

func wordLen(s string) int {
	n := 0
	for n < len(s) && wordByte(s[n]) {
		n++
	}
	return n
}

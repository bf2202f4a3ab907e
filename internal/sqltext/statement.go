// Package sqltext reads SQL statements as the effect "sql" takes them: with
// named parameters (":order_id"). It knows quotes and comments, not SQL.
package sqltext

import (
	"errors"
	"fmt"
	"strings"
)

// What is wrong with a text.
var (
	ErrEmpty    = errors.New("is empty: write a statement")
	ErrSecond   = errors.New("has more than one statement: make sql a list, they run in order in one transaction")
	ErrNumbered = errors.New("is a numbered parameter: use a name, like :order_id, and list it under params")
)

// Statement is a SQL text whose named parameters have been numbered.
type Statement struct {
	// Text has $1, $2, … in the places of the names.
	Text string
	// Names are the parameters in the order of their numbers, each once.
	Names []string
}

// Parse finds the named parameters (":name") of one SQL statement, leaving out
// what stands in quotes, in comments, in dollar quotes and behind "::". The
// error wraps [ErrEmpty], [ErrSecond] or [ErrNumbered] ($1: it would shift).
func Parse(text string) (Statement, error) {
	p := parser{src: text, numbers: map[string]int{}}
	if err := p.run(); err != nil {
		return Statement{}, err
	}
	if !p.begun {
		return Statement{}, ErrEmpty
	}
	return Statement{Text: p.out.String(), Names: p.names}, nil
}

type parser struct {
	src     string
	pos     int
	out     strings.Builder
	names   []string
	numbers map[string]int
	begun   bool // something but space and comments was met
	ended   bool // a semicolon behind that
}

func (p *parser) run() error {
	for p.pos < len(p.src) {
		rest := p.src[p.pos:]
		if err := p.count(rest); err != nil {
			return err
		}
		switch c := rest[0]; {
		case c == '\'' || c == '"' || c == '`':
			p.copy(quoted(rest, c, p.escapes()))
		case strings.HasPrefix(rest, "--"):
			p.copy(until(rest, "\n"))
		case strings.HasPrefix(rest, "/*"):
			p.copy(blockComment(rest))
		case c == '$':
			if err := p.dollar(rest); err != nil {
				return err
			}
		case strings.HasPrefix(rest, "::"):
			p.copy(2)
		case c == ':' && len(rest) > 1 && nameStart(rest[1]):
			p.parameter(rest)
		default:
			p.copy(1)
		}
	}
	return nil
}

// count notes where the statement begins and ends.
func (p *parser) count(rest string) error {
	switch c := rest[0]; {
	case c <= ' ', strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "/*"):
	case c == ';':
		p.ended = p.begun
	case p.ended:
		return ErrSecond
	default:
		p.begun = true
	}
	return nil
}

func (p *parser) copy(n int) {
	p.out.WriteString(p.src[p.pos : p.pos+n])
	p.pos += n
}

// escapes says whether a quote here opens a Postgres E” string.
func (p *parser) escapes() bool {
	if p.pos == 0 {
		return false
	}
	c := p.src[p.pos-1]
	return (c == 'E' || c == 'e') && (p.pos == 1 || !nameByte(p.src[p.pos-2]))
}

func (p *parser) parameter(rest string) {
	end := 1
	for end < len(rest) && nameByte(rest[end]) {
		end++
	}
	name := rest[1:end]
	n, ok := p.numbers[name]
	if !ok {
		p.names = append(p.names, name)
		n = len(p.names)
		p.numbers[name] = n
	}
	fmt.Fprintf(&p.out, "$%d", n)
	p.pos += end
}

// dollar copies a dollar-quoted text; $1 is refused.
func (p *parser) dollar(rest string) error {
	end := 1
	for end < len(rest) && nameByte(rest[end]) {
		end++
	}
	word := p.pos > 0 && nameByte(p.src[p.pos-1])
	if end > 1 && rest[1] >= '0' && rest[1] <= '9' && !word {
		return fmt.Errorf("%s %w", rest[:end], ErrNumbered)
	}
	if end >= len(rest) || rest[end] != '$' || word {
		p.copy(1)
		return nil
	}
	tag := rest[:end+1]
	closing := strings.Index(rest[len(tag):], tag)
	if closing < 0 {
		p.copy(len(rest))
		return nil
	}
	p.copy(closing + 2*len(tag))
	return nil
}

// quoted is the length of the quoted text that rest starts with; a doubled
// quote stands for itself.
func quoted(rest string, q byte, backslash bool) int {
	for i := 1; i < len(rest); i++ {
		switch {
		case backslash && rest[i] == '\\':
			i++
		case rest[i] == q && i+1 < len(rest) && rest[i+1] == q:
			i++
		case rest[i] == q:
			return i + 1
		}
	}
	return len(rest)
}

func until(rest, end string) int {
	if i := strings.Index(rest, end); i >= 0 {
		return i + len(end)
	}
	return len(rest)
}

// blockComment is the length of the comment that rest starts with; comments nest.
func blockComment(rest string) int {
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

func nameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func nameByte(c byte) bool { return nameStart(c) || c >= '0' && c <= '9' }

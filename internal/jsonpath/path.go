// Package jsonpath reads single values out of JSON documents by name, and
// says whether a document may be read at all.
//
// A path is a list of names separated by dots: "order.id", "items.0.id". A
// backslash takes the meaning from the character behind it: `a\.b` is the one
// name "a.b". In an object a part is a member's name, compared exactly, upper
// and lower case told apart; in an array it is an index, written without
// leading zeros. There are no wildcards, queries or functions.
//
// Receiver and consumer read the same bytes through this package, so they
// cannot read different values from one event. Where an object has a name
// twice the first member counts; [ValidUnique] refuses such documents. A byte
// order mark in front of a document is skipped.
package jsonpath

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// ErrPath says that a text is not a path.
var ErrPath = errors.New("not a JSON path")

// Path is a parsed path. The zero Path finds nothing.
type Path struct {
	parts []part
}

// part is one step of a path.
type part struct {
	name    string
	escaped string // name, safe from gjson's path language
	index   bool   // may be an array index
}

// Parse reads a path. Empty parts ("a..b") and a backslash at the end are
// refused with an error that wraps [ErrPath].
func Parse(s string) (Path, error) {
	var p Path
	var name strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 == len(s):
			return Path{}, fmt.Errorf("%w: %q ends in a backslash; write `\\\\` for the character itself", ErrPath, s)
		case s[i] == '\\':
			i++
			name.WriteByte(s[i])
		case s[i] == '.':
			if err := p.add(name.String(), s); err != nil {
				return Path{}, err
			}
			name.Reset()
		default:
			name.WriteByte(s[i])
		}
	}
	if err := p.add(name.String(), s); err != nil {
		return Path{}, err
	}
	return p, nil
}

func (p *Path) add(name, whole string) error {
	if name == "" {
		return fmt.Errorf("%w: %q has an empty part; write names separated by single dots, as in order.id", ErrPath, whole)
	}
	p.parts = append(p.parts, part{name: name, escaped: gjson.Escape(name), index: isIndex(name)})
	return nil
}

// isIndex tells whether name is a decimal number as an array index is written.
func isIndex(name string) bool {
	if len(name) > 9 || len(name) > 1 && name[0] == '0' {
		return false
	}
	for i := range len(name) {
		if name[i] < '0' || name[i] > '9' {
			return false
		}
	}
	return true
}

// Names are the parts of the path, without escapes.
func (p Path) Names() []string {
	names := make([]string, len(p.parts))
	for i, part := range p.parts {
		names[i] = part.name
	}
	return names
}

// String is the path as [Parse] reads it.
func (p Path) String() string {
	escape := strings.NewReplacer(`\`, `\\`, `.`, `\.`)
	names := p.Names()
	for i, name := range names {
		names[i] = escape.Replace(name)
	}
	return strings.Join(names, ".")
}

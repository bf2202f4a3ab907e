package jsonpath

import (
	"bytes"
	"fmt"
)

// fewNames is up to how many members an object's names are compared one by
// one; a map is faster above and bounds what a hostile document can cost.
const fewNames = 24

// nameSet notices a name that occurs twice in one object.
type nameSet struct {
	scanner *scanner
	from    int // where this object's names start in scanner.names
	many    map[string]struct{}
}

// member passes over one member: name, colon, value.
func (n *nameSet) member(depth int) error {
	s := n.scanner
	at := s.pos
	raw, err := s.text()
	if err != nil {
		return err
	}
	if s.unique && n.seen(raw) {
		return fmt.Errorf("%w: at byte %d", ErrDuplicate, at)
	}
	s.space()
	if s.peek() != ':' {
		return s.wrong("colon")
	}
	s.pos++
	s.space()
	return s.value(depth)
}

// seen remembers a name, given with its quotes, and tells whether it was there.
func (n *nameSet) seen(raw []byte) bool {
	name := raw[1 : len(raw)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(Value{Kind: String, Raw: raw}.Text())
	}
	if n.many != nil {
		_, twice := n.many[string(name)]
		n.many[string(name)] = struct{}{}
		return twice
	}
	own := n.scanner.names[n.from:]
	for _, other := range own {
		if bytes.Equal(other, name) {
			return true
		}
	}
	if n.scanner.names == nil {
		n.scanner.names = make([][]byte, 0, 2*fewNames)
	}
	n.scanner.names = append(n.scanner.names, name)
	if len(own) < fewNames {
		return false
	}
	n.many = make(map[string]struct{}, 4*fewNames)
	for _, other := range n.scanner.names[n.from:] {
		n.many[string(other)] = struct{}{}
	}
	return false
}

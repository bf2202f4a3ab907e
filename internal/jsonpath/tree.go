package jsonpath

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Tree is a whole document as Go values: map[string]any, []any, string, bool,
// nil, and for a number what number makes of its text. The document must be one
// that [Valid] accepts. As everywhere in this package, the first of several
// members of one name counts.
func Tree(doc []byte, number func(text string) any) any {
	return tree(gjson.Parse(string(content(doc))), number)
}

func tree(r gjson.Result, number func(string) any) any {
	switch kindOf(r) {
	case Object:
		m := map[string]any{}
		r.ForEach(func(name, value gjson.Result) bool {
			if _, twice := m[name.String()]; !twice {
				m[name.String()] = tree(value, number)
			}
			return true
		})
		return m
	case Array:
		list := []any{}
		r.ForEach(func(_, value gjson.Result) bool {
			list = append(list, tree(value, number))
			return true
		})
		return list
	case String:
		return r.String()
	case Bool:
		return r.Bool()
	case Number:
		return number(strings.TrimSpace(r.Raw))
	default:
		return nil
	}
}

// Walk finds the path's value in a tree as [Tree] makes it; nil when there is none.
func (p Path) Walk(tree any) any {
	for _, part := range p.parts {
		switch in := tree.(type) {
		case map[string]any:
			tree = in[part.name]
		case []any:
			i, ok := part.at(len(in))
			if !ok {
				return nil
			}
			tree = in[i]
		default:
			return nil
		}
	}
	return tree
}

// at is the part as an index into an array of n elements.
func (p part) at(n int) (int, bool) {
	if !p.index {
		return 0, false
	}
	i := 0
	for _, c := range []byte(p.name) {
		i = i*10 + int(c-'0')
	}
	return i, i < n
}

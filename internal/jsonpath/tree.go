package jsonpath

// Tree is a whole document as Go values: map[string]any, []any, string, bool,
// nil, and for a number what number makes of its text. The document must be one
// that [Valid] accepts. As everywhere in this package, the first of several
// members of one name counts.
func Tree(doc []byte, number func(text string) any) any {
	b := builder{scanner: scanner{doc: content(doc)}, makeNumber: number}
	return b.value()
}

// builder walks over a valid document once and keeps what it passes.
type builder struct {
	scanner
	makeNumber func(text string) any
}

func (b *builder) value() any {
	start := b.pos
	switch b.peek() {
	case '{':
		return b.object()
	case '[':
		return b.array()
	case '"':
		return b.string()
	case 't':
		_ = b.literal("true")
		return true
	case 'f':
		_ = b.literal("false")
		return false
	case 'n':
		_ = b.literal("null")
		return nil
	}
	if b.number() != nil {
		b.pos = len(b.doc) // no valid document: go no further
		return nil
	}
	return b.makeNumber(string(b.doc[start:b.pos]))
}

func (b *builder) string() string {
	raw, err := b.text()
	if err != nil {
		b.pos = len(b.doc)
		return ""
	}
	return Value{Kind: String, Raw: raw}.Text()
}

func (b *builder) object() map[string]any {
	m := map[string]any{}
	for b.next('}') {
		name := b.string()
		b.space()
		b.pos++ // the colon
		b.space()
		value := b.value()
		if _, twice := m[name]; !twice {
			m[name] = value
		}
	}
	return m
}

func (b *builder) array() []any {
	list := []any{}
	for b.next(']') {
		list = append(list, b.value())
	}
	return list
}

// next passes over an opening bracket or a comma, and over the closing bracket
// when nothing comes before it; then it is false.
func (b *builder) next(closing byte) bool {
	b.space()
	passed := b.peek()
	b.pos++
	b.space()
	if passed == closing {
		return false
	}
	if b.peek() == closing {
		b.pos++
		return false
	}
	return b.pos < len(b.doc)
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

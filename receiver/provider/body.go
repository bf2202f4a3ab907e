package provider

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

// path parses a path that is written in this package.
func path(text string) jsonpath.Path {
	p, err := jsonpath.Parse(text)
	if err != nil {
		panic(err)
	}
	return p
}

// text is the scalar at a path of a body that is one JSON document with one
// reading; "" when there is none.
func text(body []byte, at string) string {
	if jsonpath.ValidUnique(body) != nil {
		return ""
	}
	return textIn(body, at)
}

// textIn is text for a part of a document that was checked.
func textIn(doc []byte, at string) string {
	v, ok := path(at).Get(doc)
	if !ok || !v.Kind.Scalar() {
		return ""
	}
	return v.Text()
}

// onlyMembers tells whether a body is a JSON object with exactly these members.
func onlyMembers(body []byte, names ...string) bool {
	if jsonpath.ValidUnique(body) != nil {
		return false
	}
	root, _ := jsonpath.Root(body)
	n := 0
	root.Each(func(name string, _ jsonpath.Value) bool {
		for _, want := range names {
			if name == want {
				n++
				return true
			}
		}
		n = -1 << 20
		return false
	})
	return root.Kind == jsonpath.Object && n == len(names)
}

// batch gathers items up to a limit.
type batch struct {
	items []Item
	limit int
}

func (b *batch) add(item Item) error {
	if len(b.items) == b.limit {
		return fmt.Errorf("%w: at most %d", ErrTooMany, b.limit)
	}
	b.items = append(b.items, item)
	return nil
}

// each calls add with every item of an array, and stops at its first error.
func each(array jsonpath.Value, add func(item jsonpath.Value) error) (err error) {
	array.Each(func(_ string, item jsonpath.Value) bool {
		err = add(item)
		return err == nil
	})
	return err
}

// object writes a JSON object of raw values and texts; nil values are left out.
type object struct{ b bytes.Buffer }

func (o *object) raw(name string, value []byte) {
	if value == nil {
		return
	}
	if o.b.Len() == 0 {
		o.b.WriteByte('{')
	} else {
		o.b.WriteByte(',')
	}
	quoted, _ := json.Marshal(name) // a text: cannot fail
	o.b.Write(quoted)
	o.b.WriteByte(':')
	o.b.Write(value)
}

func (o *object) text(name, value string) {
	quoted, _ := json.Marshal(value) // a text: cannot fail
	o.raw(name, quoted)
}

// from copies members of another object under their own names.
func (o *object) from(v jsonpath.Value, names ...string) {
	for _, name := range names {
		if member, ok := v.Get(path(name)); ok {
			o.raw(name, member.Raw)
		}
	}
}

func (o *object) bytes() []byte {
	if o.b.Len() == 0 {
		return []byte("{}")
	}
	return append(bytes.Clone(o.b.Bytes()), '}')
}

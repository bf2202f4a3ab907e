package receiver

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

// maxContext is how many bytes of what its parents say stay with an item.
const maxContext = 8 << 10

// keptContext is what of an item's context stays with the event: all of it, or,
// when that is too much, what is left without its largest members. Recipes read
// the whole.
func keptContext(context []byte) []byte {
	if len(context) <= maxContext {
		return context
	}
	type member struct {
		name  []byte
		value []byte
	}
	var members []member
	root, _ := jsonpath.Root(context)
	root.Each(func(name string, v jsonpath.Value) bool {
		quoted, _ := json.Marshal(name) // a text: cannot fail
		members = append(members, member{quoted, v.Raw})
		return true
	})
	size := func() int {
		n := 2
		for _, m := range members {
			n += len(m.name) + len(m.value) + 2
		}
		return n
	}
	for size() > maxContext && len(members) > 0 {
		largest := 0
		for i, m := range members {
			if len(m.name)+len(m.value) > len(members[largest].name)+len(members[largest].value) {
				largest = i
			}
		}
		members = slices.Delete(members, largest, largest+1)
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(m.name)
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

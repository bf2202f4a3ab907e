package jsonpath

import (
	"unsafe"

	"github.com/tidwall/gjson"
)

// Root is the document itself as a value; false for one that [Valid] refuses.
func Root(doc []byte) (Value, bool) {
	if Valid(doc) != nil {
		return Value{}, false
	}
	raw := content(doc)
	return Value{Kind: kindOf(gjson.Parse(view(raw))), Raw: raw}, true
}

// Get finds the path's value within v.
func (v Value) Get(p Path) (Value, bool) { return p.Get(v.Raw) }

// Each calls f with the items of an array, or with the values of an object and
// their names, in their order, until f returns false. Other values have none.
func (v Value) Each(f func(name string, item Value) bool) {
	if v.Kind != Array && v.Kind != Object {
		return
	}
	gjson.Parse(view(v.Raw)).ForEach(func(name, item gjson.Result) bool {
		raw := unsafe.Slice(unsafe.StringData(item.Raw), len(item.Raw))
		text := ""
		if v.Kind == Object {
			text = name.String()
		}
		return f(text, Value{Kind: kindOf(item), Raw: raw})
	})
}

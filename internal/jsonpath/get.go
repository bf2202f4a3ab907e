package jsonpath

import (
	"bytes"
	"strings"
	"unsafe"

	"github.com/tidwall/gjson"
)

// Kind is the JSON type of a value.
type Kind uint8

// The kinds. The zero Kind is no value at all.
const (
	Null Kind = iota + 1
	Bool
	Number
	String
	Object
	Array
)

// Scalar tells whether values of the kind are one text: a string, a number or
// a boolean.
func (k Kind) Scalar() bool { return k == Bool || k == Number || k == String }

// Value is a value within a document.
type Value struct {
	Kind Kind
	// Raw is the value as it stands in the document, strings with their
	// quotes. It is part of the document's memory.
	Raw []byte
}

// Text is the value as a text: a string without quotes and escapes, a number
// exactly as written, true or false, null, and the raw JSON of an object or
// array. It shares no memory with the document.
func (v Value) Text() string {
	if v.Kind != String {
		return string(v.Raw)
	}
	inner := v.Raw[1 : len(v.Raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	return strings.Clone(gjson.Parse(view(v.Raw)).Str)
}

// Get finds the path's value in a document that [Valid] accepts; in any other
// the answer is arbitrary. It is false when there is none: a null found is
// true, with kind [Null].
func (p Path) Get(doc []byte) (Value, bool) {
	if len(p.parts) == 0 {
		return Value{}, false
	}
	raw := content(doc)
	kind := Kind(0)
	for _, part := range p.parts {
		if len(raw) == 0 {
			return Value{}, false
		}
		// gjson looks for the first bracket wherever it stands, also within a
		// string, and reads an index with leading zeros: both are ruled out here.
		if raw[0] != '{' && (raw[0] != '[' || !part.index) {
			return Value{}, false
		}
		r := gjson.Get(view(raw), part.escaped)
		if kind = kindOf(r); kind == 0 || r.Index <= 0 || r.Index+len(r.Raw) > len(raw) {
			return Value{}, false
		}
		raw = raw[r.Index : r.Index+len(r.Raw)]
	}
	return Value{Kind: kind, Raw: raw}, true
}

// kindOf is the kind of what gjson found; 0 for nothing.
func kindOf(r gjson.Result) Kind {
	if r.Raw == "" {
		return 0
	}
	switch r.Type {
	case gjson.String:
		return String
	case gjson.Number:
		return Number
	case gjson.True, gjson.False:
		return Bool
	case gjson.JSON:
		if r.Raw[0] == '[' {
			return Array
		}
		return Object
	case gjson.Null:
		return Null
	}
	return 0
}

// content is the document without byte order mark and surrounding white space.
func content(doc []byte) []byte {
	return bytes.Trim(bytes.TrimPrefix(doc, bom), " \t\r\n")
}

var bom = []byte("\xef\xbb\xbf")

// view is b as a string without a copy: good as long as nobody writes to b,
// which holds within a call and for nothing that is returned from here.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

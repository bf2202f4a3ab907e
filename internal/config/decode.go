package config

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// place is a path in the configuration: as shown, and with the names of
// entries and the indices of lists left open ("sources.*.secrets[]"), which is
// how rules name it.
type place struct{ text, shape string }

func (p place) field(name string) place { return place{dotted(p.text, name), dotted(p.shape, name)} }
func (p place) entry(name string) place { return place{dotted(p.text, name), dotted(p.shape, "*")} }
func (p place) index(i int) place {
	return place{p.text + "[" + strconv.Itoa(i) + "]", p.shape + "[]"}
}

func dotted(a, b string) string {
	if a == "" {
		return b
	}
	return a + "." + b
}

// textSetter is a type that may be written as plain text.
type textSetter interface{ setText(text string) error }

var (
	durationType = reflect.TypeFor[time.Duration]()
	secretType   = reflect.TypeFor[Secret]()
	textsType    = reflect.TypeFor[StringList]()
	secretsType  = reflect.TypeFor[SecretList]()
	sourceSecret = reflect.TypeFor[SourceSecret]()
)

// isSecret tells whether values of a type are never shown.
func isSecret(t reflect.Type) bool { return t == secretType || t == sourceSecret }

// isBlank tells whether an item of a list says nothing.
func isBlank(v reflect.Value) bool {
	if s, ok := v.Interface().(SourceSecret); ok {
		return s.Secret == ""
	}
	return v.Kind() == reflect.String && v.Len() == 0
}

// value decodes a node onto dst, noting every problem and going on. An empty
// value leaves what is there.
func (l *loader) value(n ast.Node, dst reflect.Value, p place) {
	if _, empty := n.(*ast.NullNode); empty || n == nil {
		return
	}
	if why := refused(n); why != "" {
		l.bad(lineOf(n), p, "%s", why)
		return
	}
	_, isText := dst.Addr().Interface().(textSetter)
	switch {
	case dst.Kind() == reflect.Pointer:
		if dst.IsNil() {
			dst.Set(reflect.New(dst.Type().Elem()))
		}
		l.value(n, dst.Elem(), p)
	case dst.Kind() == reflect.Struct && (!isText || isMapping(n)):
		l.entries(n, dst, p, l.structField)
	case dst.Kind() == reflect.Map:
		l.entries(n, dst, p, l.mapEntry)
	case dst.Kind() == reflect.Slice:
		l.list(n, dst, p)
	default:
		l.scalar(n, dst, p)
	}
}

func isMapping(n ast.Node) bool {
	_, ok := n.(ast.MapNode)
	return ok
}

// entries walks a mapping's keys: each a plain word, each once.
func (l *loader) entries(n ast.Node, dst reflect.Value, p place, take func(string, ast.Node, reflect.Value, place)) {
	m, ok := n.(ast.MapNode)
	if !ok {
		l.bad(lineOf(n), p, "wants a mapping (name: value), but this is %s", describe(n))
		return
	}
	seen := map[string]int{}
	for it := m.MapRange(); it.Next(); {
		key, line := it.Key(), lineOf(it.Key())
		if why := refused(key); why != "" {
			l.bad(line, p, "%s", why)
			continue
		}
		name, ok := keyText(key)
		if !ok {
			l.bad(line, p, "this key is not a plain word: write name: value")
			continue
		}
		if first, twice := seen[name]; twice {
			l.bad(line, p.field(name), "stands here twice, first in line %d: keep one of them", first)
			continue
		}
		seen[name] = line
		l.at[p.field(name).text] = l.here(line)
		take(name, it.Value(), dst, p)
	}
}

func (l *loader) structField(name string, n ast.Node, dst reflect.Value, p place) {
	f, ok := fieldNamed(dst, name)
	if !ok {
		l.unknown(name, lineOf(n), dst.Type(), p)
		return
	}
	l.value(n, f, p.field(name))
}

// mapEntry decodes one named entry onto the one already there, if any.
func (l *loader) mapEntry(name string, n ast.Node, dst reflect.Value, p place) {
	if dst.IsNil() {
		dst.Set(reflect.MakeMap(dst.Type()))
	}
	key := reflect.ValueOf(name)
	entry := reflect.New(dst.Type().Elem()).Elem()
	if old := dst.MapIndex(key); old.IsValid() {
		entry.Set(old)
	}
	if entry.Kind() == reflect.Pointer && entry.IsNil() {
		entry.Set(reflect.New(entry.Type().Elem())) // "legacy:" with nothing beneath is an entry too
	}
	l.value(n, entry, p.entry(name))
	dst.SetMapIndex(key, entry)
}

// list replaces dst. [StringList] and [SecretList] may be a single plain value.
func (l *loader) list(n ast.Node, dst reflect.Value, p place) {
	one := dst.Type() == textsType || dst.Type() == secretsType
	var items []ast.Node
	switch n := n.(type) {
	case *ast.SequenceNode:
		items = n.Values
	default:
		if _, ok := scalarText(n); !ok || !one {
			l.bad(lineOf(n), p, "wants a list ([ a, b ] or lines that begin with -), but this is %s", describe(n))
			return
		}
		items = []ast.Node{n}
	}
	out := reflect.MakeSlice(dst.Type(), 0, len(items))
	for i, item := range items {
		ip := p.index(i)
		l.at[ip.text] = l.here(lineOf(item))
		elem := reflect.New(dst.Type().Elem()).Elem()
		l.value(item, elem, ip)
		if isBlank(elem) {
			l.emptyItem(item, elem.Type(), ip)
			continue
		}
		if elem.Kind() == reflect.Pointer && elem.IsNil() {
			l.bad(lineOf(item), ip, "is empty: fill it or remove it")
			continue
		}
		out = reflect.Append(out, elem)
	}
	l.set[p.text] = true
	dst.Set(out)
}

// emptyItem drops an empty text from a list: silently when a variable came out
// empty, as "${OLD_SECRET:-}" does between rotations, else with a problem.
func (l *loader) emptyItem(item ast.Node, t reflect.Type, p place) {
	text, ok := scalarText(item)
	if ok && strings.Contains(text, "${") || isMapping(item) && strings.Contains(item.String(), "${") || l.hasProblem(p.text) {
		return
	}
	what := "text"
	if isSecret(t) {
		what = "secret"
	}
	l.bad(lineOf(item), p, "an empty %s means nothing here: fill it or remove it", what)
}

// fieldNamed finds a struct's field by its yaml name.
func fieldNamed(dst reflect.Value, name string) (reflect.Value, bool) {
	for i := range dst.NumField() {
		if tag := dst.Type().Field(i).Tag.Get("yaml"); tag == name && tag != "-" {
			return dst.Field(i), true
		}
	}
	return reflect.Value{}, false
}

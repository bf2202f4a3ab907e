package config

import (
	"maps"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// override applies one "path.to=value" of --set.
func (l *loader) override(arg string, root reflect.Value) {
	l.file = setFile
	path, text, ok := strings.Cut(arg, "=")
	if !ok || path == "" {
		l.bad(0, place{}, "%s is not path=value: write it like store.kind=redis or sources.stripe.path=/x", shown(path, false))
		return
	}
	n := l.overrideNode(path, text)
	if n == nil {
		return
	}
	dst, p, ok := l.walk(strings.Split(path, "."), n, root)
	if ok {
		l.replaces(p.text)
		l.value(n, dst, p)
	}
}

// walk finds what a path names. ok is false when that is nothing, with a
// problem noted, or a text in a mapping of texts, which it then sets itself.
func (l *loader) walk(rest []string, n ast.Node, dst reflect.Value) (_ reflect.Value, p place, ok bool) {
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		switch {
		case dst.Kind() == reflect.Struct:
			list, _, indexed := strings.Cut(name, "[")
			f, ok := fieldNamed(dst, list)
			if indexed && ok {
				l.wholeList(p.field(list))
				return dst, p, false
			}
			if !ok {
				l.unknown(name, 0, dst.Type(), p)
				return dst, p, false
			}
			dst, p = f, p.field(name)
		case dst.Kind() == reflect.Map && dst.Type().Elem().Kind() == reflect.Pointer:
			dst, p = namedEntry(dst, name), p.entry(name)
		case dst.Kind() == reflect.Map: // names of texts may have dots: order.paid
			name = strings.Join(append([]string{name}, rest...), ".")
			l.replaces(p.entry(name).text)
			l.mapEntry(name, n, dst, p)
			return dst, p, false
		case dst.Kind() == reflect.Slice:
			l.wholeList(p)
			return dst, p, false
		default:
			l.bad(0, p, "has no part %q: it is a plain value", name)
			return dst, p, false
		}
		l.at[p.text] = l.here(0)
	}
	return dst, p, true
}

func (l *loader) wholeList(p place) {
	l.bad(0, p, "lists are replaced whole: use --set '%s=[ … ]'", p.text)
}

// overrideNode reads the value as YAML; nothing at all is the empty text.
func (l *loader) overrideNode(path, text string) ast.Node {
	if strings.TrimSpace(text) == "" {
		text = `""`
	}
	before := len(l.problems)
	n := l.parse([]byte(text))
	for i := range l.problems[before:] {
		l.problems[before+i].Path = path
	}
	return n
}

// namedEntry is the entry of a map of structs, made when it is new.
func namedEntry(dst reflect.Value, name string) reflect.Value {
	if dst.IsNil() {
		dst.Set(reflect.MakeMap(dst.Type()))
	}
	key := reflect.ValueOf(name)
	entry := dst.MapIndex(key)
	if !entry.IsValid() || entry.IsNil() {
		entry = reflect.New(dst.Type().Elem().Elem())
		dst.SetMapIndex(key, entry)
	}
	return entry.Elem()
}

// replaces forgets what the file says in the place that an override fills: its
// lines, and its problems too, as a missing variable there no longer matters.
func (l *loader) replaces(path string) {
	inList := func(p string) bool { return strings.HasPrefix(p, path+"[") }
	maps.DeleteFunc(l.at, func(p string, _ Problem) bool { return inList(p) })
	maps.DeleteFunc(l.set, func(p string, _ bool) bool { return inList(p) })
	kept := l.problems[:0]
	for _, one := range l.problems {
		if one.File == setFile || one.Path != path && !inList(one.Path) {
			kept = append(kept, one)
		}
	}
	l.problems = kept
}

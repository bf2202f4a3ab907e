package effect

import (
	"strconv"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/internal/recipe"
)

// view is an event as templates, paths and expressions see it. The body is read
// when somebody asks for it, once for each kind of reader.
type view struct {
	event hookonce.Event
	in    *recipe.Input
	data  map[string]any
}

func newView(e hookonce.Event) *view { return &view{event: e, in: input(&e)} }

// headers are the headers kept with the event, by canonical name.
func (v *view) headers() map[string]any {
	h := make(map[string]any, len(v.in.Header))
	for name := range v.in.Header {
		h[name] = recipe.Header(v.in.Header, name)
	}
	return h
}

// scope is what expressions see.
func (v *view) scope() scope {
	s := scope{Headers: v.headers(), Key: v.in.Key, Source: v.in.Source, Type: v.in.Type}
	if v.in.JSON != nil {
		s.JSON = jsonpath.Tree(v.in.JSON, calculable)
	}
	if v.in.Context != nil {
		s.Context = jsonpath.Tree(v.in.Context, calculable)
	}
	return s
}

// forTemplates is what templates see. A null is left out, so that it fails a
// template as a missing value does.
func (v *view) forTemplates() map[string]any {
	if v.data == nil {
		v.data = map[string]any{
			"headers": v.headers(), "key": v.in.Key, "source": v.in.Source, "type": v.in.Type,
			"received_at": v.in.ReceivedAt.UTC(),
		}
		if v.in.JSON != nil {
			v.data["json"] = withoutNulls(jsonpath.Tree(v.in.JSON, printable))
		}
		if v.in.Context != nil {
			v.data["context"] = withoutNulls(jsonpath.Tree(v.in.Context, printable))
		}
	}
	return v.data
}

func withoutNulls(tree any) any {
	switch t := tree.(type) {
	case map[string]any:
		for name, value := range t {
			if value == nil {
				delete(t, name)
				continue
			}
			withoutNulls(value)
		}
	case []any:
		for _, value := range t {
			withoutNulls(value)
		}
	}
	return tree
}

// calculable is a number to calculate with. Whole numbers keep every digit.
func calculable(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return int(n)
	}
	f, _ := strconv.ParseFloat(text, 64)
	return f
}

// decimal is a number that prints as it was written: 10.50 stays 10.50.
type decimal string

// printable is a number to print.
func printable(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && strconv.FormatInt(n, 10) == text {
		return n
	}
	return decimal(text)
}

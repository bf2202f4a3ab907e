// Package recipe computes texts, first of all idempotency keys, from a request.
//
// A recipe is one of
//
//	header:NAME        the request header; several lines joined with ", "
//	query:NAME         the first parameter of this name in the URL
//	form:NAME          the first field of this name in a form body
//	json:PATH          the scalar at the path (see package jsonpath)
//	context:PATH       the same in what the parents of a batch's item say
//	json:{PATH}:{PATH} a template: texts with parts in braces
//	body               the hash of the body; computed by the receiver
//	body:stringify     "sha256:" and the hash of JSON.stringify(body), as older guards keyed
//	key, source, type, received_at
//
// In a template a part is read as the recipe in front of the colon says, or as
// its own prefix does: "json:{order.id}:{header:X-Topic}". Other texts stand
// for themselves. Parts cannot run together: between two of them stands a
// punctuation character, and where such a character, or "%", occurs in a value
// it is percent-escaped.
//
// A part that is missing, null, blank, an object or an array makes the whole
// recipe absent; there are no empty segments. A number is the text that was
// sent, so 7 and "7" are the same and 1.0 and 1 are not.
package recipe

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

// ErrRecipe says that a text is no recipe.
var ErrRecipe = errors.New("not a recipe")

// kind is where a part's value comes from.
type kind uint8

const (
	header kind = iota + 1
	query
	form
	json
	context
	body
	key
	source
	eventType
	receivedAt
	stringified
)

// named are the kinds that take a name, plain those that do not.
var (
	named = map[string]kind{"header": header, "query": query, "form": form, "json": json, "context": context}
	plain = map[string]kind{"body": body, "key": key, "source": source, "type": eventType, "received_at": receivedAt, "body:stringify": stringified}
)

// Recipe is a parsed recipe. The zero Recipe is always absent.
type Recipe struct {
	text     string
	parts    []part
	template bool
	// special are the bytes that are escaped in a template's values.
	special string
}

// part is a value with the literal text in front of it; the last one of a
// template may be literal text alone.
type part struct {
	literal string
	kind    kind
	name    string
	path    jsonpath.Path
}

// Parse reads a recipe; the error wraps [ErrRecipe] and says what to write.
func Parse(s string) (Recipe, error) {
	if k, ok := plain[s]; ok {
		return Recipe{text: s, parts: []part{{kind: k}}}, nil
	}
	prefix, rest, _ := strings.Cut(s, ":")
	k, ok := named[prefix]
	if !ok || rest == "" {
		return Recipe{}, fmt.Errorf("%w: %q; write header:NAME, json:PATH, query:NAME, form:NAME, context:PATH, a template like json:{a}:{b}, or body", ErrRecipe, s)
	}
	r := Recipe{text: s}
	if strings.Contains(rest, "{") {
		r.template = true
		if err := r.parse(k, rest); err != nil {
			return Recipe{}, err
		}
		return r, nil
	}
	p, err := newPart(k, rest)
	if err != nil {
		return Recipe{}, fmt.Errorf("%w: %q: %w", ErrRecipe, s, err)
	}
	r.parts = []part{p}
	return r, nil
}

func newPart(k kind, name string) (part, error) {
	p := part{kind: k, name: name}
	if k != json && k != context {
		if strings.TrimSpace(name) != name {
			return part{}, fmt.Errorf("white space around the name %q", name)
		}
		if k == header {
			p.name = http.CanonicalHeaderKey(name)
		}
		return p, nil
	}
	var err error
	p.path, err = jsonpath.Parse(name)
	return p, err
}

// String is the recipe as it was written.
func (r Recipe) String() string { return r.text }

// IsBody tells whether the recipe is the hash of the body.
func (r Recipe) IsBody() bool { return len(r.parts) == 1 && r.parts[0].kind == body }

// NeedsJSON tells whether the recipe reads the body as JSON.
func (r Recipe) NeedsJSON() bool { return r.has(json) || r.has(stringified) }

// IsStringified tells whether the recipe is "body:stringify": the same for
// equal bodies, whenever they come, and so fit to find what an older guard
// knows, not to be a key.
func (r Recipe) IsStringified() bool { return r.has(stringified) }

// NeedsForm tells whether the recipe reads the body as a form.
func (r Recipe) NeedsForm() bool { return r.has(form) }

// NeedsContext tells whether the recipe reads what the parents of an item say.
func (r Recipe) NeedsContext() bool { return r.has(context) }

// Parts are the parts that a recipe reads, each as a recipe of its own.
func (r Recipe) Parts() []string {
	var texts []string
	for _, p := range r.parts {
		for prefix, k := range named {
			if p.kind != k {
				continue
			}
			name := p.name
			if k == json || k == context {
				name = p.path.String()
			}
			texts = append(texts, prefix+":"+name)
		}
	}
	return texts
}

// FromRequest tells whether all parts come from the request itself, which
// holds for everything an idempotency key or a type may be made of.
func (r Recipe) FromRequest() bool {
	return !r.has(key) && !r.has(source) && !r.has(eventType) && !r.has(receivedAt)
}

func (r Recipe) has(k kind) bool {
	for _, p := range r.parts {
		if p.kind == k {
			return true
		}
	}
	return false
}

package effect

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/internal/recipe"
)

// Flavor is the kind of database a statement is for; it decides how JSON
// values are handed over.
type Flavor string

// The flavors.
const (
	Postgres Flavor = "postgres"
	SQLite   Flavor = "sqlite"
)

// param computes one parameter of a statement.
type param struct {
	path   *jsonpath.Path
	body   bool
	recipe recipe.Recipe
}

func parseParam(text string) (param, error) {
	if text == "body" {
		return param{body: true}, nil
	}
	if rest, ok := strings.CutPrefix(text, "json:"); ok && !strings.Contains(rest, "{") {
		path, err := jsonpath.Parse(rest)
		if err != nil {
			return param{}, err
		}
		return param{path: &path}, nil
	}
	r, err := recipe.Parse(text)
	if err != nil {
		return param{}, fmt.Errorf("%w, or key, source, type, received_at", err)
	}
	return param{recipe: r}, nil
}

// value is the parameter for the database; nil is NULL.
func (p param) value(e *hookonce.Event, in *recipe.Input, f Flavor) any {
	switch {
	case p.body && f == SQLite && in.JSON == nil:
		return e.Body
	case p.body:
		return string(e.Body)
	case p.path != nil:
		return p.fromJSON(in, f)
	}
	if text, ok := p.recipe.Eval(in); ok {
		return text
	}
	return nil
}

func (p param) fromJSON(in *recipe.Input, f Flavor) any {
	v, ok := p.path.Get(in.JSON)
	if !ok || v.Kind == jsonpath.Null {
		return nil
	}
	if f == Postgres {
		// The column's type reads the text: a number keeps every digit.
		return v.Text()
	}
	switch v.Kind {
	case jsonpath.Number:
		return sqliteNumber(v.Text())
	case jsonpath.Bool:
		return v.Text() == "true"
	}
	return v.Text()
}

// sqliteNumber is the number as SQLite stores it, or its text where that would
// lose digits.
func sqliteNumber(text string) any {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || len(strings.Trim(text, "-0.")) > 15 {
		return text
	}
	return f
}

// input is what recipes read of an event.
func input(e *hookonce.Event) *recipe.Input {
	in := &recipe.Input{Key: e.Key.String(), Source: e.Key.Source, Type: e.Type, ReceivedAt: e.ReceivedAt}
	if len(e.Header) > 0 {
		in.Header = make(http.Header, len(e.Header))
		for k, v := range e.Header {
			in.Header.Set(k, v)
		}
	}
	if jsonpath.Valid(e.Body) == nil {
		in.JSON = e.Body
	}
	if len(e.Context) > 0 && jsonpath.Valid(e.Context) == nil {
		in.Context = e.Context
	}
	return in
}

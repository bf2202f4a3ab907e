package config

import (
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/internal/recipe"
)

// checkKey says what is wrong with a recipe for a key: it reads the request.
func checkKey(text string) (why string) {
	if why := checkHeader(text); why != "" {
		return why
	}
	r, err := recipe.Parse(text)
	switch {
	case err != nil:
		return err.Error()
	case !r.FromRequest():
		return shown(text, false) + " is no part of a request: write \"header:NAME\", \"json:path\" or \"json:{path}:{path}\""
	}
	return ""
}

// checkValue says what is wrong with a recipe that reads a value from the
// request, which a hash of the body is not.
func checkValue(text string) (why string) {
	if text == "body" {
		return "a hash of the body says nothing here: write \"header:NAME\", \"json:path\" or \"json:{path}:{path}\""
	}
	return checkKey(text)
}

// builtinParams are the parameter values that are no recipes over the delivery.
var builtinParams = []string{"key", "source", "type", "body", "received_at"}

// checkParam says what is wrong with a parameter's value, which comes from a
// stored event: its headers and body, no longer its URL.
func checkParam(text string) (why string) {
	if slices.Contains(builtinParams, text) {
		return ""
	}
	kind, _, _ := strings.Cut(text, ":")
	if kind == "header" || kind == "json" {
		return checkKey(text)
	}
	return shown(text, false) + " is not a value: write one of " + strings.Join(builtinParams, ", ") +
		", or \"header:NAME\", \"json:path\" or \"json:{path}:{path}\""
}

// checkPath says what is wrong with a path into a JSON document.
func checkPath(path string) (why string) {
	if _, err := jsonpath.Parse(path); err != nil {
		return err.Error()
	}
	return ""
}

// checkHeader says what is wrong with the name in "header:NAME".
func checkHeader(text string) (why string) {
	name, ok := strings.CutPrefix(text, "header:")
	if !ok || strings.Contains(name, "{") || headerName(name) {
		return ""
	}
	return shown(text, false) + " names no header: write \"header:NAME\""
}

// headerName reports whether a text can be a header's name.
func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

package config

import (
	"strings"

	"github.com/hookonce/hookonce/internal/jsonpath"
)

// checkRecipe says what is wrong with a recipe: "header:NAME", "json:path", a
// template "json:{path}:{path}", or the extra word that its place allows.
func checkRecipe(recipe, extra string) (why string) {
	kind, rest, hasKind := strings.Cut(recipe, ":")
	switch {
	case extra != "" && recipe == extra:
		return ""
	case hasKind && kind == "header":
		if !headerName(rest) {
			return shown(recipe, false) + " names no header: write \"header:NAME\""
		}
		return ""
	case hasKind && kind == "json" && strings.ContainsAny(rest, "{}"):
		return checkTemplate(rest)
	case hasKind && kind == "json":
		return checkPath(rest)
	case hasKind && kind == "form":
		return notYet("recipes over form fields", "use \"header:NAME\" or \"json:path\"")
	}
	why = shown(recipe, false) + " is not a recipe: write \"header:NAME\", \"json:path\" or \"json:{path}:{path}\""
	if extra != "" {
		why += ", or \"" + extra + "\""
	}
	return why
}

// checkPath says what is wrong with a path into a JSON document.
func checkPath(path string) (why string) {
	if _, err := jsonpath.Parse(path); err != nil {
		return err.Error()
	}
	return ""
}

// checkTemplate says what is wrong with a text that has paths in braces.
func checkTemplate(text string) (why string) {
	unbalanced := shown("json:"+text, false) + " has a brace without its partner: a template is \"json:{path}:{path}\""
	for {
		before, after, found := strings.Cut(text, "{")
		if strings.Contains(before, "}") {
			return unbalanced
		}
		if !found {
			return ""
		}
		path, rest, closed := strings.Cut(after, "}")
		if !closed || strings.Contains(path, "{") {
			return unbalanced
		}
		if why := checkPath(path); why != "" {
			return why
		}
		text = rest
	}
}

// headerName reports whether a text can be a header's name.
func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

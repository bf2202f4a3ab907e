package effect

import (
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"

	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/jsonpath"
)

// executor is a parsed template, of text or of HTML.
type executor interface {
	Execute(w io.Writer, data any) error
}

// The functions of templates, beside those of text/template. print, printf,
// println and index stand in for theirs, which write "<no value>" or
// "%!f(int64=10)" into a customer's e-mail where these fail.
var functions = map[string]any{
	"optional": optional,
	"num":      num,
	"index":    index,
	"print":    func(args ...any) (string, error) { return printed(fmt.Sprint, args) },
	"println":  func(args ...any) (string, error) { return printed(fmt.Sprintln, args) },
	"printf": func(format string, args ...any) (string, error) {
		return printed(func(args ...any) string { return fmt.Sprintf(format, args...) }, args)
	},
	present: mustBePresent,
}

// present is the function that the output of every {{ }} goes through.
const present = "_present"

var errMissing = errors.New("a value is missing or null: write {{ optional .json \"path\" }} where it may be")

// parseText parses a template for plain text.
func parseText(name, text string) (executor, error) {
	t, err := template.New(name).Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, templateError(err)
	}
	for _, one := range t.Templates() {
		guardOutput(one.Tree)
	}
	return t, nil
}

// parseHTML parses a template for HTML, whose values are escaped by where they stand.
func parseHTML(name, text string) (executor, error) {
	t, err := htmltemplate.New(name).Option("missingkey=error").Funcs(functions).Parse(text)
	if err != nil {
		return nil, templateError(err)
	}
	for _, one := range t.Templates() {
		guardOutput(one.Tree)
	}
	// Its escaper looks at the template when it first runs: better now.
	if err := t.Execute(io.Discard, map[string]any{}); err != nil {
		var escape *htmltemplate.Error
		if errors.As(err, &escape) {
			return nil, templateError(err)
		}
	}
	return t, nil
}

func templateError(err error) error {
	return fmt.Errorf("is no template (%s)", strings.TrimPrefix(oneLine(err.Error()), "template: "))
}

// render executes a template on an event. What it lacks, no further try brings:
// the error is permanent.
func render(t executor, v *view) (string, error) {
	var b strings.Builder
	if err := t.Execute(&b, v.forTemplates()); err != nil {
		return "", consumer.Permanent(errors.New(strings.TrimPrefix(oneLine(err.Error()), "template: ")))
	}
	return b.String(), nil
}

// guardOutput sends the output of every {{ }} of a template through [mustBePresent].
func guardOutput(tree *parse.Tree) {
	if tree != nil && tree.Root != nil {
		guardList(tree, tree.Root)
	}
}

func guardList(tree *parse.Tree, list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, n := range list.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 {
				name := parse.NewIdentifier(present).SetTree(tree).SetPos(n.Pos)
				n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{name}})
			}
		case *parse.IfNode:
			guardList(tree, n.List)
			guardList(tree, n.ElseList)
		case *parse.RangeNode:
			guardList(tree, n.List)
			guardList(tree, n.ElseList)
		case *parse.WithNode:
			guardList(tree, n.List)
			guardList(tree, n.ElseList)
		}
	}
}

// mustBePresent refuses what would print as "<no value>" or as a Go value.
func mustBePresent(v any) (any, error) {
	switch v.(type) {
	case nil:
		return nil, errMissing
	case map[string]any:
		return nil, errors.New("an object cannot be printed: name a value in it")
	case []any:
		return nil, errors.New("a list cannot be printed: use {{ range }}, or name a value in it")
	}
	return v, nil
}

// optional is the value at a path of a tree, or the empty text.
func optional(tree any, path string) (any, error) {
	p, err := jsonpath.Parse(path)
	if err != nil {
		return nil, err
	}
	if v := p.Walk(tree); v != nil {
		return v, nil
	}
	return "", nil
}

// num is a value as a number to compare or to format.
func num(v any) (float64, error) {
	switch v := v.(type) {
	case int64:
		return float64(v), nil
	case int:
		return float64(v), nil
	case float64:
		return v, nil
	case decimal:
		return strconv.ParseFloat(string(v), 64)
	case string:
		return strconv.ParseFloat(strings.TrimSpace(v), 64)
	}
	return 0, errors.New("num wants a number")
}

// index finds a member of an object or an element of a list; it fails when
// there is none.
func index(in any, at ...any) (any, error) {
	for _, a := range at {
		switch t := in.(type) {
		case map[string]any:
			name, ok := a.(string)
			if !ok {
				return nil, errors.New("index of an object wants a name")
			}
			in = t[name]
		case []any:
			i := reflect.ValueOf(a)
			if !i.CanInt() {
				return nil, errors.New("index of a list wants a number")
			}
			if i.Int() < 0 || i.Int() >= int64(len(t)) {
				return nil, errMissing
			}
			in = t[i.Int()]
		default:
			return nil, errMissing
		}
		if in == nil {
			return nil, errMissing
		}
	}
	return in, nil
}

// badVerb is how fmt reports a verb that does not fit.
var badVerb = regexp.MustCompile(`%!.?\(`)

func printed(print func(...any) string, args []any) (string, error) {
	for _, arg := range args {
		if _, err := mustBePresent(arg); err != nil {
			return "", err
		}
	}
	text := print(args...)
	if badVerb.MatchString(text) {
		return "", errors.New("a verb does not fit its value: give numbers as (num .json.total), with %.2f or %.0f")
	}
	return text, nil
}

package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// parse reads YAML text and returns its only document's body; nil when that is
// empty or when a problem was noted. Twice the same key is left to the
// decoder, which can name both lines.
func (l *loader) parse(text []byte) ast.Node {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	file, err := parseYAML(text)
	if err != nil {
		l.syntax(err, text)
		return nil
	}
	if len(file.Docs) == 0 {
		return nil
	}
	for _, doc := range file.Docs[1:] {
		if doc.Body != nil {
			l.bad(lineOf(doc.Body), place{}, "a second document begins here: the configuration is one document, remove the --- line")
			return nil
		}
	}
	return file.Docs[0].Body
}

// parseYAML turns a panic of the parser into an error: a configuration that
// upsets it is still the configuration's fault.
func parseYAML(text []byte) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			file, err = nil, fmt.Errorf("the YAML reader gave up on it (%v)", r)
		}
	}()
	return parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
}

// syntax notes an error of the parser by its message and line alone: its full
// text shows the source, secrets included.
func (l *loader) syntax(err error, text []byte) {
	line, message := 1, err.Error()
	var s *yaml.SyntaxError
	if errors.As(err, &s) {
		message = s.Message
		if s.Token != nil && s.Token.Position != nil {
			line = s.Token.Position.Line
		}
	}
	hint := ""
	if lines := bytes.Split(text, []byte("\n")); line >= 1 && line <= len(lines) && bytes.Contains(lines[line-1], []byte("${")) {
		hint = ` (inside [ ] and { } a value with ${…} needs quotes: [ "${NAME}" ])`
	}
	l.bad(line, place{}, "is not YAML: %s%s", message, hint)
}

// lineOf is where a node begins; a mapping begins at its first key, not at the colon.
func lineOf(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		n = m.Key
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

// scalarText is the text of a scalar as written, quotes and escapes resolved.
// Plain 012 stays "012": only the field it fills gives it a type.
func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value == nil {
			return "", true
		}
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// describe names what a node is, for "wants … but this is …".
func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	default:
		return "a plain value"
	}
}

// refused names the YAML features that the file may not use; empty for others.
func refused(n ast.Node) string {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		return "anchors (&name) and aliases (*name) are not read: repeat the value, or put it in a variable ${NAME}; quote a text that begins with & or *"
	case *ast.TagNode:
		return "tags (!name) are not read: remove the tag, or quote a text that begins with an exclamation mark"
	case *ast.MergeKeyNode:
		return "the merge key << is not read: repeat the values"
	}
	return ""
}

// keyText is the text of a mapping's key, if that is a plain word.
func keyText(key ast.Node) (string, bool) {
	text, ok := scalarText(key)
	return text, ok && text != "" && !strings.ContainsAny(text, "\r\n")
}

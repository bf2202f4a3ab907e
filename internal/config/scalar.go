package config

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// scalar decodes plain text onto dst, variables filled in.
func (l *loader) scalar(n ast.Node, dst reflect.Value, p place) {
	raw, ok := scalarText(n)
	if !ok {
		wants := "a plain value"
		if dst.Kind() == reflect.Struct {
			wants += " or a mapping"
		}
		l.bad(lineOf(n), p, "wants %s, but this is %s", wants, describe(n))
		return
	}
	text, filled, ok := l.expand(raw, lineOf(n), p)
	if !ok {
		return
	}
	if isSecret(dst.Type()) {
		text = l.trimSecret(n, text, p)
	}
	if text == "" && dst.Kind() != reflect.String {
		if !filled && !quotedEmpty(n) {
			l.bad(lineOf(n), p, "is empty: give it a value or remove it")
		}
		return // an empty variable leaves the default
	}
	if text != "" {
		l.set[p.text] = true
	}
	if why := assign(dst, text); why != "" {
		// What a variable holds may be a secret: show what the file says.
		l.bad(lineOf(n), p, "%s %s", shown(raw, isSecret(dst.Type())), why)
	}
}

// quotedEmpty reports an explicit "" which, like nothing at all, means the default.
func quotedEmpty(n ast.Node) bool {
	s, ok := n.(*ast.StringNode)
	return ok && s.Value == ""
}

// assign sets dst from text and says what text should have been.
func assign(dst reflect.Value, text string) (why string) {
	if dst.Type() == durationType {
		d, err := parseDuration(text)
		if err != nil {
			return err.Error()
		}
		dst.SetInt(int64(d))
		return ""
	}
	if s, ok := dst.Addr().Interface().(textSetter); ok {
		if err := s.setText(text); err != nil {
			return err.Error()
		}
		return ""
	}
	switch dst.Kind() {
	case reflect.String:
		dst.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || len(text) == 1 {
			return "is neither true nor false"
		}
		dst.SetBool(b)
	default:
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil || dst.OverflowInt(i) {
			return "is not a whole number"
		}
		dst.SetInt(i)
	}
	return ""
}

// trimSecret drops white space around a secret, which no sender uses and many
// copies bring along, and says so where it is not just a block's last line break.
func (l *loader) trimSecret(n ast.Node, text string, p place) string {
	trimmed := strings.TrimSpace(text)
	if _, block := n.(*ast.LiteralNode); trimmed != text && !block {
		where := l.here(lineOf(n))
		where.Path, where.Text = p.text, "white space around this secret was left out"
		l.warnings = append(l.warnings, where.String())
	}
	return trimmed
}

// shown quotes a value for a problem: as the file has it, shortened.
func shown(raw string, secret bool) string {
	if secret {
		return "the value"
	}
	const most = 60
	if len(raw) > most {
		raw = strings.ToValidUTF8(raw[:most], "") + "…"
	}
	return strconv.Quote(raw)
}

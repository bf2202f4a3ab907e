package effect

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/internal/recipe"
)

// phrase is a short text of an effect: a template ("Your ticket {{ .json.id }}"),
// a path ("json:order.email", "header:X-Email") or the text as it stands.
type phrase struct {
	literal  string
	template executor
	path     *jsonpath.Path
	recipe   *recipe.Recipe
}

func parsePhrase(text string) (phrase, error) {
	text = strings.TrimSpace(text)
	if strings.Contains(text, "{{") {
		t, err := parseText("text", text)
		return phrase{template: t}, err
	}
	prefix, rest, _ := strings.Cut(text, ":")
	switch {
	case prefix == "json" && !strings.Contains(rest, "{"):
		path, err := jsonpath.Parse(rest)
		return phrase{path: &path}, err
	case prefix == "json" || prefix == "header" || prefix == "context":
		r, err := recipe.Parse(text)
		return phrase{recipe: &r}, err
	}
	return phrase{literal: text}, nil
}

// fixed tells whether the phrase is the same for every event.
func (p phrase) fixed() bool { return p.template == nil && p.path == nil && p.recipe == nil }

// texts is what the phrase says of an event: one text, or each element of a
// list that a path leads to. A path to nothing is a permanent error.
func (p phrase) texts(v *view) ([]string, error) {
	switch {
	case p.template != nil:
		text, err := render(p.template, v)
		return []string{text}, err
	case p.recipe != nil:
		text, ok := p.recipe.Eval(v.in)
		if !ok {
			return nil, consumer.Permanent(fmt.Errorf("there is nothing at %s", p.recipe))
		}
		return []string{text}, nil
	case p.path != nil:
		return p.fromJSON(v)
	}
	return []string{p.literal}, nil
}

func (p phrase) fromJSON(v *view) ([]string, error) {
	missing := consumer.Permanent(fmt.Errorf("there is no text at json:%s", p.path))
	value, ok := p.path.Get(v.in.JSON)
	if !ok {
		return nil, missing
	}
	if value.Kind.Scalar() {
		return []string{value.Text()}, nil
	}
	if value.Kind != jsonpath.Array {
		return nil, missing
	}
	var texts []string
	for _, one := range jsonpath.Tree(value.Raw, printable).([]any) {
		text, ok := one.(string)
		if !ok {
			return nil, missing
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// text is the phrase as one text.
func (p phrase) text(v *view) (string, error) {
	texts, err := p.texts(v)
	if err != nil {
		return "", err
	}
	if len(texts) != 1 {
		return "", consumer.Permanent(fmt.Errorf("%d texts at json:%s, one is wanted", len(texts), p.path))
	}
	return texts[0], nil
}

var errControl = errors.New("has a line break or another control character")

// control tells whether a text could break out of the line it stands on.
func control(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' })
}

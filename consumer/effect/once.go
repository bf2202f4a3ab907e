package effect

import (
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/internal/recipe"
)

// CompileOncePer compiles the value for which an effect is done once: a path
// ("json:order.id"), a recipe of several ("json:{order.id}:{item}"), or a
// template. An event without one is a permanent failure.
func CompileOncePer(text string) (func(hookonce.Event) (string, error), error) {
	p, err := parsePhrase(text)
	if err != nil {
		return nil, err
	}
	if p.fixed() {
		return nil, errors.New("is the same for every event, and one event alone would take effect: write \"json:order.id\" or \"json:{order.id}:{item}\"")
	}
	return func(e hookonce.Event) (string, error) {
		return p.text(newView(e))
	}, nil
}

// Order is where a source's events say which version of which entity they bring.
type Order struct {
	// Entity and Version are recipes over headers and JSON paths.
	Entity, Version string
}

// CompileOnlyLatest compiles what only_latest needs to know of an event, by the
// event's source.
func CompileOnlyLatest(sources map[string]Order) (func(hookonce.Event) (string, consumer.Version, error), error) {
	type recipes struct{ entity, version recipe.Recipe }
	compiled := make(map[string]recipes, len(sources))
	for name, o := range sources {
		var r recipes
		var err error
		if r.entity, err = recipe.Parse(o.Entity); err != nil {
			return nil, fmt.Errorf("entity of source %s: %w", name, err)
		}
		if r.version, err = recipe.Parse(o.Version); err != nil {
			return nil, fmt.Errorf("version of source %s: %w", name, err)
		}
		compiled[name] = r
	}
	return func(e hookonce.Event) (string, consumer.Version, error) {
		r, ok := compiled[e.Key.Source]
		if !ok {
			return "", consumer.Version{}, consumer.Permanent(fmt.Errorf("source %s has no entity and version in this configuration", e.Key.Source))
		}
		in := input(&e)
		entity, ok := r.entity.Eval(in)
		if !ok {
			return "", consumer.Version{}, consumer.Permanent(fmt.Errorf("there is no entity at %s", r.entity))
		}
		text, ok := r.version.Eval(in)
		if !ok {
			return "", consumer.Version{}, consumer.Permanent(fmt.Errorf("there is no version at %s", r.version))
		}
		version, err := consumer.ParseVersion(text)
		if err != nil {
			return "", consumer.Version{}, consumer.Permanent(fmt.Errorf("%s: %w", r.version, err))
		}
		return entity, version, nil
	}, nil
}

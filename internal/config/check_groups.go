package config

import (
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/sqltext"
)

func (k *checker) group(g *Group, at string) {
	k.name(at, g.Name)
	if g.Name == "unrouted" {
		k.bad(at, "hookonce.unrouted is the queue of events that no group wants: choose another name")
	}
	if len(g.Match) == 0 {
		k.bad(at+".match", "says nothing: name what the group wants, like [ \"orders.#\" ]")
	}
	for i, pattern := range g.Match {
		k.pattern(indexed(at+".match", i), pattern)
		k.matchesSource(indexed(at+".match", i), pattern)
	}
	k.atLeast(at+".concurrency", int64(g.Concurrency), 1)
	if k.atLeast(at+".prefetch", int64(g.Prefetch), 1) && g.Prefetch > 65535 {
		k.bad(at+".prefetch", "%d is too large: at most 65535", g.Prefetch)
	}
	if g.Concurrency > g.Prefetch {
		k.warn(at+".concurrency", "%d is more than prefetch (%d), which is how many events can be at work", g.Concurrency, g.Prefetch)
	}
	k.retry(g.Retry, at+".retry")
	if len(g.Effects) == 0 {
		k.bad(at+".effects", "the group does nothing: give it an effect with a name and a sql, an email or a forward")
	}
	names := map[string]string{}
	for i, e := range g.Effects {
		ep := indexed(at+".effects", i)
		k.effectNames(e, ep, names)
		k.effect(g, e, ep)
	}
}

// matchesSource warns of a pattern for a source that the file does not have,
// which may be a slip, or a source of a receiver with a file of its own.
func (k *checker) matchesSource(path, pattern string) {
	first, _, _ := strings.Cut(pattern, ".")
	if len(k.c.Sources) == 0 || strings.ContainsAny(first, "*#") {
		return
	}
	if _, ok := k.c.Sources[first]; !ok {
		k.warn(path, "%s wants events of source %s, which is not in this file", pattern, first)
	}
}

func (k *checker) retry(r Retry, at string) {
	k.atLeast(at+".max_attempts", int64(r.MaxAttempts), 1)
	k.atLeast(at+".max_crashes", int64(r.MaxCrashes), 1)
	k.positive(at+".first", r.First)
	if r.Max < r.First {
		k.bad(at+".max", "%s is shorter than first (%s): the delay grows from first to max", formatDuration(r.Max), formatDuration(r.First))
	}
}

// effectNames wants a name that no other effect of the group has or had:
// names say which steps of an event are done.
func (k *checker) effectNames(e *Effect, at string, taken map[string]string) {
	if e.Name == "" {
		k.bad(at+".name", "the effect has no name: give it one that stays, as it says which steps of an event are done")
	} else {
		k.name(at+".name", e.Name)
	}
	mine := append([]string{e.Name}, e.Was...)
	for i, name := range mine {
		path := at + ".name"
		if i > 0 {
			path = indexed(at+".was", i-1)
			k.name(path, name)
		}
		if other, twice := taken[name]; twice && name != "" {
			k.bad(path, "%s is taken by %s (%s): a group's effects need different names", name, other, k.spot(other))
			continue
		}
		taken[name] = path
	}
}

// statement wants one statement whose parameters are all given.
func (k *checker) statement(e *Effect, text, path string, used map[string]bool) {
	s, err := sqltext.Parse(text)
	if err != nil {
		k.bad(path, "%v", err)
	}
	for _, name := range s.Names {
		if _, ok := e.Params[name]; !ok && !used[name] {
			k.bad(path, ":%s is not among the params: add params: { %s: %s }", name, name, paramHint(name))
		}
		used[name] = true
	}
}

func paramHint(name string) string {
	if slices.Contains(builtinParams, name) {
		return name
	}
	return `"json:` + name + `"`
}

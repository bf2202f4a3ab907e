package config

import (
	"maps"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/consumer/effect"
)

// effect wants one thing to do, done right.
func (k *checker) effect(g *Group, e *Effect, at string) {
	k.positive(at+".timeout", e.Timeout)
	switch kinds := k.kinds(e); {
	case len(kinds) == 0:
		k.bad(at, "the effect does nothing: give it a sql, an email or a forward")
	case len(kinds) > 1:
		k.bad(at, "has %s: an effect does one thing, so that each is recorded; make them effects of their own", strings.Join(kinds, " and "))
	}
	k.sql(e, at)
	k.outside(g, e, at)
	if k.role.doesEffects() {
		k.compiled(e, at)
	}
	if e.OnlyLatest {
		k.onlyLatest(g, at+".only_latest")
	}
}

func (k *checker) kinds(e *Effect) []string {
	var kinds []string
	if len(e.SQL) > 0 {
		kinds = append(kinds, "sql")
	}
	if e.Email != nil {
		kinds = append(kinds, "email")
	}
	if e.Forward != nil {
		kinds = append(kinds, "forward")
	}
	return kinds
}

func (k *checker) sql(e *Effect, at string) {
	used := map[string]bool{}
	for i, text := range e.SQL {
		path := at + ".sql"
		if len(e.SQL) > 1 {
			path = indexed(path, i)
		}
		k.statement(e, text, path, used)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Params)) {
		path := at + ".params." + name
		if why := checkParam(e.Params[name]); why != "" {
			k.bad(path, "%s", why)
		}
		if !used[name] {
			k.bad(path, "no :%s in the sql: use it there or remove it here", name)
		}
	}
}

// outside checks what concerns effects that no transaction covers.
func (k *checker) outside(g *Group, e *Effect, at string) {
	if e.Email == nil && e.Forward == nil {
		for _, name := range []string{"on_unknown", "rerun_within"} {
			if k.mentions(at + "." + name) {
				k.bad(at+"."+name, "a sql step commits with its record and is never unknown: remove the line")
			}
		}
		return
	}
	if k.oneOf(at+".on_unknown", e.OnUnknown, "rerun", "park") {
		if e.OnUnknown == "rerun" {
			k.positive(at+".rerun_within", e.RerunWithin)
		} else if k.mentions(at + ".rerun_within") {
			k.warn(at+".rerun_within", "has no effect: on_unknown is park")
		}
	}
	own, rate := e.own()
	kind := "forward"
	if e.Email != nil {
		kind = "email"
	}
	k.positive(at+"."+kind+".timeout", own)
	if need := e.needs(g.Concurrency); e.Timeout < need && e.Timeout > 0 {
		k.bad(at+".timeout", "%s is too short for %d events that wait their turn under rate %s and take %s each: leave timeout out, or give it %s",
			formatDuration(e.Timeout), g.Concurrency, rateOrNone(rate), formatDuration(own), formatDuration(need))
	}
}

func rateOrNone(r Rate) string {
	if r.Count == 0 {
		return "none"
	}
	return r.String()
}

// compiled reads templates, expressions and addresses as the consumer will.
func (k *checker) compiled(e *Effect, at string) {
	if e.Email != nil {
		_, err := e.Email.Spec(k.c.Dir).Compile()
		k.settings(at+".email", err)
	}
	if e.Forward != nil {
		_, err := e.Forward.Spec().Compile()
		k.settings(at+".forward", err)
	}
	if e.When != "" {
		if _, err := effect.CompileWhen(e.When); err != nil {
			k.bad(at+".when", "%v", err)
		}
	}
	if e.OncePer != "" {
		if _, err := effect.CompileOncePer(e.OncePer); err != nil {
			k.bad(at+".once_per", "%v", err)
		}
	}
}

func (k *checker) settings(at string, err error) {
	for _, p := range effect.Problems(err) {
		k.bad(at+"."+p.Setting, "%s", p.Text)
	}
}

// onlyLatest wants each source that the group takes events of to say which
// version of what an event brings.
func (k *checker) onlyLatest(g *Group, at string) {
	orders := k.c.Orders()
	if len(orders) == 0 {
		k.bad(at, "no source says what its events are versions of: give the sources entity and version, like \"json:order.id\" and "+
			"\"json:order.updated_at\" (a consumer's file needs sources for that too)")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(k.c.Sources)) {
		if _, ok := orders[name]; !ok && wants(g, name) {
			k.bad(at, "source %s (%s) has no entity and version: set both, or narrow match to sources that have them",
				name, k.spot("sources."+name))
		}
	}
}

// wants tells whether a pattern of the group can match events of the source.
func wants(g *Group, source string) bool {
	return slices.ContainsFunc(g.Match, func(pattern string) bool {
		first, _, _ := strings.Cut(pattern, ".")
		return first == source || first == "*" || first == "#"
	})
}

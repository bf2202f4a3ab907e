package config

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// checker applies the rules that look at a whole configuration.
type checker struct {
	*loader
	c     *Config
	role  Role
	prior Problems // found while reading; what they explain is not said again
}

// Validate checks a configuration that [Load] did not read. Its error is
// [Problems], without lines. It leaves the configuration as it is: defaults
// are not filled in.
func (c *Config) Validate(role Role) error {
	l := newLoader(Options{Role: role})
	l.file = "configuration"
	l.check(c, role)
	if len(l.problems) > 0 {
		return l.problems
	}
	return nil
}

func (l *loader) check(c *Config, role Role) {
	k := &checker{loader: l, c: c, role: role, prior: slices.Clone(l.problems)}
	k.positive("startup_timeout", c.StartupTimeout)
	k.positive("shutdown_timeout", c.ShutdownTimeout)
	if role != Trial {
		k.receiver()
		k.listeners()
		k.store()
		k.broker()
		k.inbox()
		k.audit()
	}
	for _, name := range slices.Sorted(maps.Keys(c.Sources)) {
		k.source(c.Sources[name], "sources."+name)
	}
	k.paths()
	for _, name := range slices.Sorted(maps.Keys(c.Consumers)) {
		k.group(c.Consumers[name], "consumers."+name)
	}
	k.nothingToDo()
}

// where is the position of a path, or of the nearest part around it. A file's
// first line stands for what the file leaves out altogether.
func (l *loader) where(path string) Problem {
	for p := path; p != ""; p = parent(p) {
		if at, ok := l.at[p]; ok {
			return Problem{File: at.File, Line: at.Line}
		}
	}
	if l.isFile {
		return Problem{File: l.file, Line: 1}
	}
	return Problem{File: l.file}
}

// spot is a position for the middle of a sentence.
func (l *loader) spot(path string) string {
	at := l.where(path)
	if at.Line > 0 {
		return fmt.Sprintf("line %d", at.Line)
	}
	return at.File
}

// mentions reports whether the file or an override has the path.
func (l *loader) mentions(path string) bool {
	_, ok := l.at[path]
	return ok
}

// parent drops the last name or index of a path.
func parent(path string) string {
	return path[:max(0, strings.LastIndexAny(path, ".["))]
}

func (l *loader) hasProblem(path string) bool {
	return slices.ContainsFunc(l.problems, func(p Problem) bool { return p.Path == path })
}

// failed reports whether reading a part of the file failed.
func (k *checker) failed(path string) bool {
	return slices.ContainsFunc(k.prior, func(p Problem) bool { return under(p.Path, path) })
}

// bad notes a problem, unless reading that part of the file failed already.
func (k *checker) bad(path, format string, args ...any) {
	if k.failed(path) {
		return
	}
	where := k.where(path)
	where.Path, where.Text = path, fmt.Sprintf(format, args...)
	k.problems = append(k.problems, where)
}

func (k *checker) warn(path, format string, args ...any) {
	where := k.where(path)
	where.Path, where.Text = path, fmt.Sprintf(format, args...)
	k.warnings = append(k.warnings, where.String())
}

// positive wants more than nothing.
func (k *checker) positive(path string, d time.Duration) {
	if d <= 0 {
		k.bad(path, "must be more than 0, like 30s")
	}
}

func (k *checker) atLeast(path string, n, least int64) bool {
	if n < least {
		k.bad(path, "%d is too small: at least %d", n, least)
	}
	return n >= least
}

// oneOf wants one of the words.
func (k *checker) oneOf(path, word string, words ...string) bool {
	if slices.Contains(words, word) {
		return true
	}
	k.bad(path, "%s is not known here: %s", shown(word, false), suggest(word, words))
	return false
}

// nameRule is what the names of sources, groups and effects look like: they
// become parts of keys, topics and queue names.
var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)

func (k *checker) name(path, name string) {
	if !nameRule.MatchString(name) {
		where := k.where(path)
		where.Path = path
		where.Text = shown(name, false) + " cannot be a name: write 1 to 64 of a-z, 0-9, - and _, a letter or digit first"
		k.problems = append(k.problems, where)
	}
}

var schemaRule = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

func (k *checker) schema(path, name string) {
	if !schemaRule.MatchString(name) {
		k.bad(path, "%s cannot be a schema's name: write a-z, 0-9 and _, at most 63, no digit first", shown(name, false))
	}
}

// address wants a URL with one of the schemes and a host. It never shows the
// value, which may hold a password.
func (k *checker) address(path string, value Secret, schemes ...string) {
	u, err := url.Parse(value.Reveal())
	switch {
	case err != nil || !slices.Contains(schemes, u.Scheme):
		k.bad(path, "is not a URL that begins with %s: check it for characters that need percent-escapes, too",
			strings.Join(schemes, ":// or ")+"://")
	case u.Hostname() == "":
		k.bad(path, "names no host: write %s://host:port/…", u.Scheme)
	}
}

// nothingToDo warns of a role without work.
func (k *checker) nothingToDo() {
	switch {
	case k.role.receives() && len(k.c.Sources) == 0:
		k.warn("sources", "no source is configured: every delivery is answered 404")
	case k.role.consumes() && len(k.c.Consumers) == 0:
		k.warn("consumers", "no consumer group is configured: events wait until one wants them")
	}
}

package config

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand fills in ${NAME}, ${NAME:-default} and ${file:/path}; "$${" becomes
// "${". filled says that there was a variable; ok is false when a problem was
// noted, one for each variable.
func (l *loader) expand(raw string, line int, p place) (text string, filled, ok bool) {
	var b strings.Builder
	ok = true
	for rest := raw; ; {
		before, after, found := strings.Cut(rest, "${")
		if !found {
			b.WriteString(rest)
			return b.String(), filled, ok
		}
		if strings.HasSuffix(before, "$") {
			b.WriteString(before)
			b.WriteString("{")
			rest = after
			continue
		}
		b.WriteString(before)
		inside, behind, closed := strings.Cut(after, "}")
		if !closed {
			l.bad(line, p, "${ without } behind it: close it, or write $${ for the two characters themselves")
			return "", filled, false
		}
		value, why := l.variable(inside, p)
		if why != "" {
			l.bad(line, p, "%s", why)
			ok = false
		}
		b.WriteString(value)
		rest, filled = behind, true
	}
}

// variable looks up what stands between ${ and }.
func (l *loader) variable(inside string, p place) (value, why string) {
	if path, isFile := strings.CutPrefix(inside, "file:"); isFile {
		return l.fileValue(path, p)
	}
	name, fallback, hasFallback := strings.Cut(inside, ":-")
	if !variableName.MatchString(name) {
		return "", shown("${"+inside+"}", false) +
			" is not a variable: write ${NAME}, ${NAME:-default} or ${file:/path}, or $${ for the two characters themselves"
	}
	value, found := l.getenv(name)
	switch {
	case hasFallback && value == "":
		return fallback, ""
	case !found && !l.spare(p):
		return "", "the environment variable " + name + " is not set: set it, or write ${" + name + ":-default}"
	}
	return value, ""
}

func (l *loader) fileValue(path string, p place) (value, why string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.dir, path)
	}
	text, err := readBounded(path)
	if err != nil {
		if l.spare(p) {
			return "", ""
		}
		return "", "the file " + path + " cannot be read (" + reason(err) + "): make it a readable file of at most 1MiB"
	}
	value = strings.TrimSuffix(string(text), "\n")
	return strings.TrimSuffix(value, "\r"), ""
}

// spareParts are the places whose values a role never uses: it starts without
// their variables, so that a secret need not be where it is not used.
var spareParts = map[Role][]string{
	ReceiverRole: {"inbox", "admin", "consumers"},
	ConsumerRole: {"store.redis", "store.postgres", "receiver", "sources.*.secrets", "sources.*.verify"},
	Operator:     {"receiver", "admin", "sources.*.secrets", "sources.*.verify", "consumers.*.effects"},
	Trial:        {"receiver", "admin", "store", "broker", "inbox", "audit", "sources.*.secrets", "sources.*.verify", "consumers.*.effects[].forward.secret"},
}

func (l *loader) spare(p place) bool {
	return slices.ContainsFunc(spareParts[l.role], func(part string) bool { return under(p.shape, part) })
}

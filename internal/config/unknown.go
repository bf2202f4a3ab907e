package config

import (
	"reflect"
	"slices"
	"strings"
)

// laterNames are documented names that this version does not read yet, by the
// shape of their place, with the way to do without.
var laterNames = map[string]string{
	"consumers.*.effects[].email":         "write a row with sql and let a mailer of yours send it",
	"consumers.*.effects[].forward":       "write a row with sql and let a worker of yours send it",
	"consumers.*.effects[].once_per":      "give the table a unique column and write \"on conflict do nothing\" in the sql",
	"consumers.*.effects[].only_latest":   "compare the version in the sql: \"on conflict … do update … where excluded.version >= …\"",
	"consumers.*.effects[].when":          "match fewer types, or put the condition into the sql",
	"consumers.*.effects[].on_unknown":    "remove the line: a sql step is never unknown",
	"consumers.*.effects[].rerun_within":  "remove the line: a sql step is never unknown",
	"consumers.*.effects[].allow_private": "remove the line",
}

// notYet is the one wording for what is documented and not built.
func notYet(what, instead string) string {
	return "this version does not do " + what + " yet: " + instead
}

// unknown notes a name that a mapping does not have, with the nearest it has.
func (l *loader) unknown(name string, line int, in reflect.Type, p place) {
	if at, ok := l.at[p.field(name).text]; ok && at.File == l.file {
		line = at.Line // the key's line; the value may begin later
	}
	if instead, later := laterNames[p.field(name).shape]; later {
		l.bad(line, p.field(name), "%s", notYet(name, instead))
		return
	}
	var known []string
	for i := range in.NumField() {
		if tag := in.Field(i).Tag.Get("yaml"); tag != "-" {
			known = append(known, tag)
		}
	}
	l.bad(line, p.field(name), "is not a known name: %s", suggest(name, known))
}

// suggest names the nearest of the known words, or all when none is near.
func suggest(word string, known []string) string {
	best, least := "", len(word)/3+2
	for _, k := range known {
		if d := distance(strings.ToLower(word), k); d < least {
			best, least = k, d
		}
	}
	if best != "" {
		return "did you mean " + best + "?"
	}
	known = slices.Clone(known)
	slices.Sort(known)
	return "use one of " + strings.Join(known, ", ")
}

// distance counts the letters to insert, drop, exchange or swap with their
// neighbour to make a into b.
func distance(a, b string) int {
	if len(a) > 100 {
		return len(a)
	}
	two, one := []int(nil), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}

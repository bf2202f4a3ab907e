package config

import (
	"reflect"
	"slices"
	"strings"
)

// unknown notes a name that a mapping does not have, with the nearest it has.
func (l *loader) unknown(name string, line int, in reflect.Type, p place) {
	if at, ok := l.at[p.field(name).text]; ok && at.File == l.file {
		line = at.Line // the key's line; the value may begin later
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

package inbox

import (
	"strconv"
	"strings"
)

// column is a column of rows that a statement is given as arguments.
type column struct {
	kind string // in Postgres
	all  any    // a slice
	n    int
	at   func(i int) any
}

func blobs(v [][]byte) column { return column{"bytea[]", v, len(v), func(i int) any { return v[i] }} }

func texts(v []string) column { return column{"text[]", v, len(v), func(i int) any { return v[i] }} }

func ints(v []int64) column { return column{"bigint[]", v, len(v), func(i int) any { return v[i] }} }

// table is rows as the source of an insert: each has the columns and, behind
// them, what more says. In Postgres the columns travel as arrays, so that the
// statement is the same for any number of rows, and is parsed once.
func (d Dialect) table(a *args, more string, columns ...column) string {
	var s strings.Builder
	if d.arrays {
		s.WriteString("SELECT u.*, " + more + " FROM unnest(")
		for i, c := range columns {
			if i > 0 {
				s.WriteString(", ")
			}
			s.WriteString(a.add(c.all) + "::" + c.kind)
		}
		s.WriteString(") AS u")
		return s.String()
	}
	s.WriteString("VALUES ")
	for i := range columns[0].n {
		if i > 0 {
			s.WriteString(", ")
		}
		s.WriteByte('(')
		for _, c := range columns {
			*a = append(*a, c.at(i))
			s.WriteByte('$')
			s.WriteString(strconv.Itoa(len(*a)))
			s.WriteString(", ")
		}
		s.WriteString(more)
		s.WriteByte(')')
	}
	return s.String()
}

// in is the condition that a column is one of these values.
func (d Dialect) in(a *args, v [][]byte) string {
	if d.arrays {
		return "= ANY(" + a.add(v) + "::bytea[])"
	}
	vs := make([]any, len(v))
	for i := range v {
		vs[i] = v[i]
	}
	return "IN (" + a.add(vs...) + ")"
}

package config

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with a configuration, and the way out.
type Problem struct {
	// File is the configuration file as it was named, "--set" for an override,
	// or "built-in defaults" when there is no file.
	File string
	// Line is the line in File, from 1; 0 where there is none.
	Line int
	// Path is the place in the configuration, like sources.stripe.secrets[0];
	// empty when the file as a whole is meant.
	Path string
	// Text says what is wrong and what to do. It never holds a secret.
	Text string
}

// String is the problem as one line, file:line: path: text.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		b.WriteByte(':')
		b.WriteString(strconv.Itoa(p.Line))
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// Problems is everything that is wrong with a configuration, in the order of
// its lines, those of --set last.
type Problems []Problem

// Error lists the problems, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// sort puts the problems in the order in which a person repairs them.
func (p Problems) sort() {
	slices.SortStableFunc(p, func(a, b Problem) int {
		if (a.File == setFile) != (b.File == setFile) {
			if a.File == setFile {
				return 1
			}
			return -1
		}
		return cmp.Compare(a.Line, b.Line)
	})
}

// under reports whether path is root or lies beneath it.
func under(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

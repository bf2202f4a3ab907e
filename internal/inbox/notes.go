package inbox

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxError      = 4 << 10 // bytes kept of an error
	maxNoteDetail = 300     // bytes of an error in the timeline
)

// addNote is the assignment that appends to a timeline; %s is the place of a
// text made by note. A timeline of 32 KiB grows no further.
const addNote = `notes = CASE WHEN length(notes) < 32768 THEN notes || CAST(%s AS text) ELSE notes END`

// note is one line of a timeline; nothing without what.
func note(at time.Time, what, detail string) string {
	if what == "" {
		return ""
	}
	line, err := json.Marshal(Note{At: at, What: what, Detail: cut(clean(detail), maxNoteDetail)})
	if err != nil {
		return "" // a struct of times and texts
	}
	return string(line) + "\n"
}

// parseNotes reads a timeline back.
func parseNotes(text string) []Note {
	var notes []Note
	for line := range strings.Lines(text) {
		var n Note
		if json.Unmarshal([]byte(line), &n) == nil {
			notes = append(notes, n)
		}
	}
	return notes
}

func generationText(n int) string { return fmt.Sprintf("generation %d", n) }

// clean makes a text fit for a text column: Postgres takes neither NUL nor
// broken UTF-8.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// cut shortens a text to at most n bytes, at a character's edge.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// errorText is an error as it is stored.
func errorText(s string) string { return cut(clean(s), maxError) }

// varying finds what differs between two errors of one kind: quoted values,
// UUIDs, hexadecimal ids of 8 digits and more, and numbers. A SQLSTATE is
// found too, to be left alone.
var varying = regexp.MustCompile(`SQLSTATE [0-9A-Z]{5}` +
	`|"[^"]*"` + "|`[^`]*`" + `|\B'[^']*'` + // an apostrophe within a word quotes nothing
	`|(?i:\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)` +
	`|(?i:\b(?:0x)?[0-9a-f]*[0-9][0-9a-f]*\b)` +
	`|[0-9]+`)

// fingerprint is an error's text without what varies, to count errors alike.
func fingerprint(s string) string {
	s = cut(s, 1000)
	s = varying.ReplaceAllStringFunc(s, func(m string) string {
		switch {
		case strings.HasPrefix(m, "SQLSTATE"):
			return m
		case m[0] == '"' || m[0] == '\'' || m[0] == '`':
			return m[:1] + "?" + m[:1]
		}
		return "?"
	})
	return cut(s, maxNoteDetail)
}

package inbox

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/topic"
)

// Cursor is a place in a listing; empty before the start and after the end.
type Cursor string

// ErrCursor says that a text is no cursor.
var ErrCursor = errors.New("not a cursor of this listing")

// place is what a cursor names: the last row that was listed.
type place struct {
	at     int64
	digest []byte
	group  string
}

func (p place) cursor() Cursor {
	raw := binary.BigEndian.AppendUint64(nil, uint64(p.at))
	raw = append(append(raw, p.digest...), p.group...)
	return Cursor(base64.RawURLEncoding.EncodeToString(raw))
}

func (c Cursor) place() (place, error) {
	raw, err := base64.RawURLEncoding.DecodeString(string(c))
	if err != nil || len(raw) < 24 || strings.ToValidUTF8(string(raw[24:]), "") != string(raw[24:]) {
		return place{}, fmt.Errorf("%q: %w", c, ErrCursor)
	}
	return place{at: int64(binary.BigEndian.Uint64(raw)), digest: raw[8:24], group: string(raw[24:])}, nil
}

// where collects conditions.
type where struct {
	d    Dialect
	a    args
	cond []string
}

// add appends a condition; %s in it are the places of its arguments.
func (w *where) add(cond string, vs ...any) {
	places := make([]any, len(vs))
	for i, v := range vs {
		places[i] = w.a.add(v)
	}
	w.cond = append(w.cond, fmt.Sprintf(cond, places...))
}

func (w *where) String() string {
	if len(w.cond) == 0 {
		return "true"
	}
	return strings.Join(w.cond, " AND ")
}

// common adds what selects from both tables alike; errors and times stand in
// the named columns.
func (w *where) common(f Filter, errorColumn, timeColumn string) {
	if f.Key != nil {
		digest := f.Key.Digest()
		w.add("digest = %s", digest[:])
	}
	if f.Group != "" {
		w.add("grp = %s", clean(f.Group))
	}
	if f.Source != "" {
		w.add("source = %s", clean(f.Source))
	}
	if f.Type != "" {
		if like, exact := likePattern(f.Type); exact {
			w.add("type = %s", like)
		} else {
			w.add(`type LIKE %s ESCAPE '\'`, like)
		}
	}
	if f.Error != "" {
		w.add(w.d.contains+"("+errorColumn+", %s) > 0", clean(f.Error))
	}
	if !f.Since.IsZero() {
		w.add(timeColumn+" >= %s", micros(f.Since))
	}
	if !f.Until.IsZero() {
		w.add(timeColumn+" < %s", micros(f.Until))
	}
}

// after adds a cursor's condition: rows beyond it, in the order of the time
// column, digest and grp. op is > for ascending and < for descending.
func (w *where) after(c Cursor, timeColumn, op string) error {
	if c == "" {
		return nil
	}
	p, err := c.place()
	if err != nil {
		return err
	}
	w.add("("+timeColumn+", digest, grp) "+op+" (%s, %s, %s)", p.at, p.digest, p.group)
	return nil
}

// likePattern widens a topic pattern to one of LIKE, which the matcher of
// typeMatcher narrows again; without wildcards the type itself.
func likePattern(pattern string) (like string, exact bool) {
	if !strings.ContainsAny(pattern, "*#") {
		return clean(pattern), true
	}
	// "a.#" matches "a" too, so a "#" takes the dots beside it along.
	words := strings.Split(clean(pattern), ".")
	var b strings.Builder
	for i, w := range words {
		if w == "#" {
			b.WriteByte('%')
			continue
		}
		if i > 0 && words[i-1] != "#" {
			b.WriteByte('.')
		}
		if w == "*" {
			b.WriteByte('%')
			continue
		}
		b.WriteString(strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(w))
	}
	return b.String(), false
}

// typeMatcher tells exactly which types a filter wants.
func typeMatcher(pattern string) (func(escaped string) bool, error) {
	if pattern == "" {
		return func(string) bool { return true }, nil
	}
	p, err := topic.Parse(pattern)
	if err != nil {
		return nil, fmt.Errorf("inbox: filter by type: %w", err)
	}
	return p.Match, nil
}

// expiry is the time before which what is done is forgotten.
func (b *Inbox) expiry() time.Time { return b.now().Add(-b.o.TTL) }

package inbox

import (
	"cmp"
	"database/sql"
	"fmt"
	"strings"

	"github.com/hookonce/hookonce"
)

// rawType is what is kept of a type beside its escaped form: nothing where
// they are equal.
func rawType(t string) []byte {
	if t == hookonce.EscapeType(t) {
		return []byte{}
	}
	return []byte(t)
}

// fullType puts a type together again. An empty type cannot be told from
// "unknown", and means the same.
func fullType(escaped string, raw []byte) string { return cmp.Or(string(raw), escaped) }

// keyOf reads a stored full key. The source holds no slash.
func keyOf(full []byte) hookonce.Key {
	source, id, _ := strings.Cut(string(full), "/")
	return hookonce.Key{Source: source, ID: id}
}

// asDigest reads a digest column.
func asDigest(b []byte) ([16]byte, error) {
	if len(b) != 16 {
		return [16]byte{}, fmt.Errorf("digest of %d bytes in the inbox", len(b))
	}
	return [16]byte(b), nil
}

// scanDigests gives the one column of each row to fn.
func scanDigests(fn func(digest [16]byte)) func(*sql.Rows) error {
	return func(rs *sql.Rows) error {
		var b []byte
		if err := rs.Scan(&b); err != nil {
			return err
		}
		digest, err := asDigest(b)
		if err != nil {
			return err
		}
		fn(digest)
		return nil
	}
}

// stepColumns are what scanStep reads.
const stepColumns = `name, state, attempts, at, detail, first_at`

// scanStep reads stepColumns behind those that first takes.
func scanStep(rs *sql.Rows, first ...any) (Step, error) {
	var s Step
	var state string
	var at, started int64
	err := rs.Scan(append(first, &s.Name, &state, &s.Attempts, &at, &s.Detail, &started)...)
	s.State, s.At, s.First = StepState(state), fromMicros(at), fromMicros(started)
	return s, err
}

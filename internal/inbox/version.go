package inbox

import (
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"strings"
	"time"
)

// Version orders the events of one entity: a number or a time.
type Version struct {
	text   string
	number *big.Rat // nil for a time
	at     time.Time
}

// ErrVersion says that a text is no version, or that two have no order.
var ErrVersion = errors.New("not a version")

// decimal bounds what big.Rat is given: it would compute 1e999999999.
var decimal = regexp.MustCompile(`^[+-]?[0-9]{1,200}(\.[0-9]{1,200})?([eE][+-]?[0-9]{1,3})?$`)

// versionTimes are the forms of times that providers write.
var versionTimes = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", time.DateOnly}

// ParseVersion reads a number, or a time as in RFC 3339; one without a zone is
// UTC.
func ParseVersion(text string) (Version, error) {
	text = strings.TrimSpace(text)
	if decimal.MatchString(text) {
		if n, ok := new(big.Rat).SetString(text); ok {
			return Version{text: text, number: n}, nil
		}
	}
	for _, layout := range versionTimes {
		if at, err := time.Parse(layout, text); err == nil {
			return Version{text: text, at: at.UTC()}, nil
		}
	}
	return Version{}, fmt.Errorf("%w: %q is neither a number nor a time (RFC 3339)", ErrVersion, cut(clean(text), 100))
}

// String is the version as it was written.
func (v Version) String() string { return v.text }

// Compare is negative when v is older than w, 0 when they are equal, positive
// when it is newer. A number and a time have no order.
func (v Version) Compare(w Version) (int, error) {
	switch {
	case v.number != nil && w.number != nil:
		return v.number.Cmp(w.number), nil
	case v.number == nil && w.number == nil:
		return v.at.Compare(w.at), nil
	}
	return 0, fmt.Errorf("%w: %q and %q cannot be compared: one is a number, the other a time", ErrVersion, v.text, w.text)
}

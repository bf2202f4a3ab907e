package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
)

// Secret is a value that is never printed: not by fmt with any verb, not by
// slog, not by encoders. [Secret.Reveal] is the only way to it.
type Secret string

// Reveal is the value itself.
func (s Secret) Reveal() string { return string(s) }

// String hides the value.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString hides the value from %#v.
func (s Secret) GoString() string { return `config.Secret("` + s.String() + `")` }

// Format hides the value from every verb of fmt, %d and %x too.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	switch {
	case verb == 'v' && f.Flag('#'):
		text = s.GoString()
	case verb == 'q':
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(f, text)
}

// Format writes the whole for every verb. Without it fmt walks a pointer that
// a verb does not fit, like %s, past the methods that hide the secrets.
func (s *Source) Format(f fmt.State, _ rune) {
	type plain Source
	formatPlain(f, plain(*s))
}

// Format writes the whole for every verb; see [Source.Format].
func (c *Config) Format(f fmt.State, _ rune) {
	type plain Config
	formatPlain(f, plain(*c))
}

func formatPlain(f fmt.State, v any) {
	if f.Flag('#') {
		_, _ = fmt.Fprintf(f, "%#v", v)
		return
	}
	_, _ = fmt.Fprintf(f, "%+v", v)
}

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// SourceSecret is a secret of a source; in YAML the text alone, or
// { value: …, expires: 2026-12-31 } for an old one that is on its way out.
type SourceSecret struct {
	Secret  `yaml:"value"`
	Expires Moment `yaml:"expires"`
}

func (s *SourceSecret) setText(text string) error {
	*s = SourceSecret{Secret: Secret(text)}
	return nil
}

// Moment is a point in time; in YAML a date (its end, in UTC) or RFC 3339.
type Moment struct{ time.Time }

func (m *Moment) setText(text string) error {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		m.Time = t
		return nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return errors.New("is no point in time: write 2026-12-31 or 2026-12-31T18:00:00Z")
	}
	m.Time = t.AddDate(0, 0, 1)
	return nil
}

// Size is a number of bytes; in YAML "1MiB", "512KiB", "2GiB" or a plain number.
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"B", 1}}

var errSize = errors.New("is not a size: write 512KiB, 1MiB, 2GiB or a plain number of bytes")

func (s *Size) setText(text string) error {
	digits, unit := text, int64(1)
	for _, u := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			digits, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return errSize
	}
	*s = Size(n * unit)
	return nil
}

// String is the size in the largest unit that divides it.
func (s Size) String() string {
	for i := len(sizeUnits) - 2; i >= 0; i-- {
		if u := sizeUnits[i]; s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// StringList is one text or a list of texts in YAML.
type StringList []string

// SecretList is one secret or a list of secrets in YAML.
type SecretList []Secret

var errDuration = errors.New("is not a duration: write a number with a unit, like 500ms, 10s, 10m, 12h or 45d")

// parseDuration reads Go's syntax with days in front: "45d", "1d12h", "90s".
// A negative duration is refused: nothing here can mean one.
func parseDuration(text string) (time.Duration, error) {
	rest := text
	var days time.Duration
	if d, after, ok := strings.Cut(text, "d"); ok {
		n, err := strconv.ParseUint(d, 10, 63)
		if err != nil || n > uint64(math.MaxInt64/(24*time.Hour)) {
			return 0, errDuration
		}
		days, rest = time.Duration(n)*24*time.Hour, after
		if rest == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil || d < 0 || days > math.MaxInt64-d {
		return 0, errDuration
	}
	return days + d, nil
}

// formatDuration writes whole days as "45d", everything else as Go does.
func formatDuration(d time.Duration) string {
	if day := 24 * time.Hour; d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	return d.String()
}

// setText reads the plain word that verify may be.
func (v *Verify) setText(text string) error {
	if text != None {
		return errors.New("is neither the plain word none nor a mapping like { scheme: hmac-sha256, header: X-Signature }")
	}
	*v = Verify{Scheme: None}
	return nil
}

// setText reads the plain recipe that type may be.
func (t *TypeRule) setText(text string) error {
	*t = TypeRule{From: text}
	return nil
}

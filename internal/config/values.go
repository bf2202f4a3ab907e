package config

import "log/slog"

// Secret is a value that is never printed.
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

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the value from encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Size is a number of bytes; in YAML "1MiB", "512KiB", "2GiB" or a plain number.
type Size int64

// StringList is one text or a list of texts in YAML.
type StringList []string

package wire

import (
	"math"
	"strconv"
	"time"
)

// Brokers, shovels and management tools rewrite header values: a number comes
// back as another width or as text, text as bytes. These readers take them all
// and answer the zero value for the rest.

// text reads a text; numbers and times are written out.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano)
	case bool:
		return strconv.FormatBool(v)
	}
	if n, ok := integer(v); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

// count reads a number that is never negative and fits 32 bits; anything else is 0.
func count(v any) int {
	n, ok := integer(v)
	if !ok {
		parsed, err := strconv.ParseInt(text(v), 10, 64)
		if err != nil {
			return 0
		}
		n = parsed
	}
	if n < 0 || n > math.MaxInt32 {
		return 0
	}
	return int(n)
}

// truthy reads a mark: present, and not an explicit no.
func truthy(v any) bool {
	switch text(v) {
	case "", "0", "false":
		return false
	}
	return true
}

func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int8:
		return int64(v), true
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	case uint8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case uint64:
		return int64(min(v, math.MaxInt64)), true
	case float32:
		return int64(v), float32(int64(v)) == v
	case float64:
		return int64(v), float64(int64(v)) == v
	}
	return 0, false
}

package wire

import (
	"encoding/json"
	"maps"
	"slices"
)

// MaxHeaders is how many bytes the kept request headers may take as JSON.
const MaxHeaders = 8 << 10

// MaxContext is how many bytes the context of a split item may take as JSON.
const MaxContext = 8 << 10

// CapHeaders keeps, in the order of their names, the headers that together fit
// into [MaxHeaders] bytes of JSON, and says how many it dropped. A single
// header that is too long does not keep shorter ones behind it out. h itself
// is returned when all of it fits.
func CapHeaders(h map[string]string) (kept map[string]string, dropped int) {
	size := len("{}")
	kept = make(map[string]string, len(h))
	for _, name := range slices.Sorted(maps.Keys(h)) {
		one, err := json.Marshal(map[string]string{name: h[name]})
		add := len(one) - len("{}") + len(",")
		if err != nil || size+add > MaxHeaders {
			dropped++
			continue
		}
		size += add
		kept[name] = h[name]
	}
	if dropped == 0 {
		return h, 0
	}
	return kept, dropped
}

func encodeHeaders(h map[string]string) string {
	if len(h) == 0 {
		return ""
	}
	text := object(h)
	if len(text) > MaxHeaders {
		kept, _ := CapHeaders(h)
		text = object(kept)
	}
	return string(text)
}

// object is the JSON form of a map of strings, as json.Marshal writes it, in a
// fourth of the time: every event passes through here.
func object(h map[string]string) []byte {
	names := make([]string, 0, 16)
	size := len("{}")
	for name, value := range h {
		names = append(names, name)
		size += len(name) + len(value) + len(`"":"",`)
	}
	slices.Sort(names)
	out := append(make([]byte, 0, size), '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendQuoted(out, name), ':')
		out = appendQuoted(out, h[name])
	}
	return append(out, '}')
}

func appendQuoted(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			text, _ := json.Marshal(s) // a string always has a JSON form
			return append(out, text...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

func decodeHeaders(text string) map[string]string {
	if text == "" || len(text) > MaxHeaders {
		return nil
	}
	var h map[string]string
	if json.Unmarshal([]byte(text), &h) != nil || len(h) == 0 {
		return nil
	}
	return h
}

func decodeContext(text string) []byte {
	if len(text) < len("{}") || len(text) > MaxContext || !json.Valid([]byte(text)) {
		return nil
	}
	return []byte(text)
}

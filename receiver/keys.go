package receiver

import "strings"

// Keys are the alternatives that make each source's keys, by its name: those
// of its preset where it names none, and "body" with what is hashed. Two lists
// that are equal give every delivery the same key.
func (rc *Receiver) Keys() map[string][]string {
	all := make(map[string][]string, len(rc.sources))
	for _, s := range rc.sources {
		texts := make([]string, len(s.keys))
		for i := range s.keys {
			texts[i] = s.keys[i].String()
			if s.keys[i].IsBody() {
				texts[i] = s.hash.String()
			}
		}
		all[s.name] = texts
	}
	return all
}

// String is "body", and how it is rewritten before it is hashed. The window is
// no part of it: it says how long a key counts, not what it is.
func (h bodyHash) String() string {
	if !h.canonical {
		return "body"
	}
	text := "body canonical"
	for _, path := range h.ignore {
		text += " -" + strings.Join(path, ".")
	}
	return text
}

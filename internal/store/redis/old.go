package redis

import (
	"encoding/json"
	"slices"

	"github.com/hookonce/hookonce"
)

// Adopt says what an older guard of a source has left in Redis, so that what it
// knows counts as delivered. Its keys are read and never written; they end with
// their own time to live.
type Adopt struct {
	// Prefix is what stands before the key in its names, like "idem:orders:".
	Prefix string
	// Final are the values that mean "done". Besides them only a stored response
	// counts: a JSON object whose status, statusCode or status_code is 200 to
	// 299, with an optional body. Any other value, like "processing", leaves the
	// state unknown.
	Final []string
}

// addOld adds the names under which an older guard may know a claim's keys.
func (s *Store) addOld(c *claiming) {
	keys := make([]hookonce.Key, 0, 2)
	for _, n := range append(c.here, c.there...) {
		keys = append(keys, n.key)
	}
	for _, k := range keys {
		a, ok := s.o.Adopt[k.Source]
		name := a.Prefix + k.ID
		taken := func(n named) bool { return n.name == name }
		switch {
		case !ok || slices.ContainsFunc(c.here, taken) || slices.ContainsFunc(c.there, taken):
		case s.keys.shards == 1:
			c.here = append(c.here, named{name: name, key: k})
		default:
			c.there = append(c.there, named{name: name, key: k})
		}
	}
}

// old judges a value that Hookonce did not write, under the name of key.
func (s *Store) old(c *claiming, key hookonce.Key, value string) hookonce.Claimed {
	a, ok := s.o.Adopt[key.Source]
	if !ok {
		return unknownItem(errForeign)
	}
	first, ok := a.first(value, c.claim.Answer)
	if !ok {
		return unknownItem(errUnfinished)
	}
	// When and with which body it came first is not known: this one is as good.
	return hookonce.Claimed{
		Outcome: hookonce.Duplicate, Key: key, First: first,
		FirstSeen: c.seen, Fingerprint: c.claim.Fingerprint,
	}
}

// first is the answer that a final value stands for.
func (a Adopt) first(value string, usual hookonce.Answer) (hookonce.Answer, bool) {
	if slices.Contains(a.Final, value) {
		return usual, true
	}
	var stored struct {
		Status json.RawMessage `json:"status"`
		Code   json.RawMessage `json:"statusCode"`
		Snake  json.RawMessage `json:"status_code"`
		Body   json.RawMessage `json:"body"`
	}
	if json.Unmarshal([]byte(value), &stored) != nil {
		return hookonce.Answer{}, false
	}
	for _, raw := range []json.RawMessage{stored.Code, stored.Snake, stored.Status} {
		var status int
		if len(raw) == 0 {
			continue
		}
		if json.Unmarshal(raw, &status) == nil {
			return hookonce.Answer{Status: status, Body: bodyText(stored.Body)}, status >= 200 && status <= 299
		}
		var word string
		if json.Unmarshal(raw, &word) == nil && slices.Contains(a.Final, word) {
			return usual, true
		}
	}
	return hookonce.Answer{}, false
}

// bodyText is a stored body: a JSON string's text, or the JSON as it stands.
func bodyText(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

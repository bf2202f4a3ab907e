package consumer

import "github.com/hookonce/hookonce/internal/inbox"

// Version orders the events of one entity. It is made by [ParseVersion].
type Version = inbox.Version

// ParseVersion reads a version: a number of any length ("42", "17.5"), or a
// time (RFC 3339, or a date with a time and no zone, which is UTC). Anything
// else has no order that could be relied on, and is an error.
//
// Two times that a provider writes with whole seconds may be equal although
// one is later: an equal version is applied, so the one that arrives last wins.
func ParseVersion(text string) (Version, error) { return inbox.ParseVersion(text) }

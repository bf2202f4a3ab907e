package admin

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/inbox"
	"github.com/hookonce/hookonce/internal/topic"
)

// Selection says which events or dead letters are meant, in the words of the
// command line's filters; empty fields select everything.
type Selection struct {
	Source string `json:"source,omitempty"`
	Type   string `json:"type,omitempty"` // a type, or a pattern over types: order.*, #.paid
	Group  string `json:"group,omitempty"`
	Key    string `json:"key,omitempty"`    // full key, percent-escaped
	State  string `json:"state,omitempty"`  // of events only
	Reason string `json:"reason,omitempty"` // of dead letters
	Error  string `json:"error,omitempty"`  // a part of the error's text
	Since  string `json:"since,omitempty"`  // a time, or how long ago: see ParseTime
	Until  string `json:"until,omitempty"`
}

// Empty says that nothing is filtered.
func (s Selection) Empty() bool { return s == Selection{} }

var (
	states = []inbox.State{
		"accepted", "published", inbox.Running, inbox.Retrying, inbox.Done, inbox.Dead, inbox.Discarded, inbox.Purged,
	}
	reasons = []inbox.Reason{
		inbox.Failed, inbox.Permanent, inbox.Unknown, inbox.Expired, inbox.Crashed, inbox.Invalid, inbox.Unrouted,
	}
)

// filter checks a selection; the error names all that is wrong.
func (s Selection) filter(now time.Time) (inbox.Filter, error) {
	f := inbox.Filter{
		Source: s.Source, Type: s.Type, Group: s.Group, Error: s.Error,
		State: inbox.State(s.State), Reason: inbox.Reason(s.Reason),
	}
	var errs []error
	if s.Key != "" {
		key, err := ParseFullKey(s.Key)
		if err != nil {
			errs = append(errs, fmt.Errorf("key: %w", err))
		}
		f.Key = &key
	}
	if s.Type != "" {
		if _, err := topic.Parse(s.Type); err != nil {
			errs = append(errs, fmt.Errorf("type: %w", err))
		}
	}
	if s.State != "" && !slices.Contains(states, f.State) {
		errs = append(errs, fmt.Errorf("state: %q is none of %s", s.State, list(states)))
	}
	if s.Reason != "" && !slices.Contains(reasons, f.Reason) {
		errs = append(errs, fmt.Errorf("reason: %q is none of %s", s.Reason, list(reasons)))
	}
	for name, at := range map[string]struct {
		text string
		to   *time.Time
	}{"since": {s.Since, &f.Since}, "until": {s.Until, &f.Until}} {
		if at.text == "" {
			continue
		}
		t, err := ParseTime(at.text, now)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		*at.to = t
	}
	return f, errors.Join(errs...)
}

func list[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
}

// ParseTime reads a time (RFC 3339), a day ("2026-03-01", UTC), or how long
// before now ("90m", "36h", "7d").
func ParseTime(text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return now.UTC().AddDate(0, 0, -n), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.UTC().Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time: write 2026-03-01T12:00:00Z, 2026-03-01, or how long ago: 90m, 36h, 7d", text)
}

// fields are the selection's parts by their names in URLs.
func (s *Selection) fields() map[string]*string {
	return map[string]*string{
		"source": &s.Source, "type": &s.Type, "group": &s.Group, "key": &s.Key, "state": &s.State,
		"reason": &s.Reason, "error": &s.Error, "since": &s.Since, "until": &s.Until,
	}
}

// Page is which part of a list is asked for.
type Page struct {
	// Limit is how many items, 1 to 1000; 0 means 100.
	Limit int
	// After is the next of the page before; empty starts.
	After string
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

func (s Selection) query(p Page) url.Values {
	v := url.Values{}
	for name, text := range s.fields() {
		if *text != "" {
			v.Set(name, *text)
		}
	}
	if p.Limit != 0 {
		v.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.After != "" {
		v.Set("after", p.After)
	}
	return v
}

// parseQuery reads what query writes, and refuses anything else.
func parseQuery(v url.Values) (Selection, Page, error) {
	var s Selection
	p := Page{Limit: defaultLimit}
	var errs []error
	fields := s.fields()
	for name, values := range v {
		text := values[len(values)-1]
		switch to := fields[name]; {
		case to != nil:
			*to = text
		case name == "after":
			p.After = text
		case name == "limit":
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > maxLimit {
				errs = append(errs, fmt.Errorf("limit: %q is no number from 1 to %d", text, maxLimit))
			}
			p.Limit = n
		default:
			errs = append(errs, fmt.Errorf("%q is no filter", name))
		}
	}
	return s, p, errors.Join(errs...)
}

package admin

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/inbox"
)

// Time is a time as the API writes it: RFC 3339 in UTC with milliseconds; null
// for none.
type Time struct{ time.Time }

const timeLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes the time.
func (t Time) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + t.UTC().Format(timeLayout) + `"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		t.Time = time.Time{}
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(bytes.Trim(b, `"`)))
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	t.Time = at.UTC()
	return nil
}

// List is a page of items. Next, when not empty, asks for what follows.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next"`
}

// Event is one event in one consumer group.
type Event struct {
	Key        string `json:"key"` // full
	Source     string `json:"source"`
	Type       string `json:"type"`
	Group      string `json:"group"`
	State      string `json:"state"`
	ReceivedAt Time   `json:"received_at"`
	// Deliveries is how often the provider sent it; null while nobody counts.
	Deliveries *int   `json:"deliveries"`
	Attempts   int    `json:"attempts"` // over all generations
	LastError  string `json:"last_error"`
}

// Detail is an event with all that is known of it in one group.
type Detail struct {
	Event
	Generation int        `json:"generation"`
	Steps      []Step     `json:"steps"`
	Timeline   []TimeNote `json:"timeline"`
	// Content is there for dead letters alone: of others only the queue knows it.
	*Content
}

// Content is what the provider sent.
type Content struct {
	ContentType string            `json:"content_type,omitempty"`
	Headers     map[string]string `json:"headers"`
	Body        string            `json:"body,omitempty"`        // of a body that is text
	BodyBase64  []byte            `json:"body_base64,omitempty"` // of any other
}

// Step is the record of one step.
type Step struct {
	Name     string `json:"name"`
	State    string `json:"state"`
	Attempts int    `json:"attempts"`
	At       Time   `json:"at"`
	Detail   string `json:"detail,omitempty"`
}

// TimeNote is one entry of a timeline.
type TimeNote struct {
	At     Time   `json:"at"`
	What   string `json:"what"`
	Detail string `json:"detail"`
}

// Dead is one dead letter.
type Dead struct {
	Key        string `json:"key"` // full
	Source     string `json:"source"`
	Type       string `json:"type"`
	Group      string `json:"group"`
	DeadAt     Time   `json:"dead_at"`
	Attempts   int    `json:"attempts"` // of the last generation
	Reason     string `json:"reason"`
	Step       string `json:"step"`
	LastError  string `json:"last_error"`
	Generation int    `json:"generation"`
}

// DeadGroup is a number of dead letters that died alike.
type DeadGroup struct {
	Group  string `json:"group"`
	Type   string `json:"type"`
	Reason string `json:"reason"`
	Error  string `json:"error"`
	Count  int64  `json:"count"`
	First  Time   `json:"first"`
	Last   Time   `json:"last"`
}

// FullKey is a key in JSON: as it is. One that is no text is escaped, because
// JSON could not give its bytes back.
func FullKey(k hookonce.Key) string {
	if s := k.String(); utf8.ValidString(s) {
		return s
	}
	return k.Escaped()
}

// ParseFullKey reads a key as [FullKey] writes it. A "%" in a key that is text
// is itself: templates escape their parts with it.
func ParseFullKey(s string) (hookonce.Key, error) {
	k, err := hookonce.ParseKey(s)
	if err == nil && utf8.ValidString(k.ID) {
		k.Source, k.ID, _ = strings.Cut(s, "/")
	}
	return k, err
}

func eventOf(r inbox.Record) Event {
	return Event{
		Key: FullKey(r.Key), Source: r.Key.Source, Type: r.Type, Group: r.Group, State: string(r.State),
		ReceivedAt: Time{r.ReceivedAt}, Attempts: r.Attempts, LastError: r.LastError,
	}
}

func detailOf(r inbox.Record) Detail {
	d := Detail{Event: eventOf(r), Generation: r.Generation, Steps: []Step{}, Timeline: []TimeNote{}}
	for _, s := range r.Steps {
		d.Steps = append(d.Steps, Step{Name: s.Name, State: string(s.State), Attempts: s.Attempts, At: Time{s.At}, Detail: s.Detail})
	}
	for _, n := range r.Timeline {
		d.Timeline = append(d.Timeline, TimeNote{At: Time{n.At}, What: n.What, Detail: n.Detail})
	}
	return d
}

func contentOf(e hookonce.Event) *Content {
	c := &Content{ContentType: e.ContentType, Headers: e.Header}
	if c.Headers == nil {
		c.Headers = map[string]string{}
	}
	if utf8.Valid(e.Body) {
		c.Body = string(e.Body)
	} else {
		c.BodyBase64 = e.Body
	}
	return c
}

func deadOf(l inbox.Letter) Dead {
	return Dead{
		Key: FullKey(l.Event.Key), Source: l.Event.Key.Source, Type: l.Event.Type, Group: l.Group, DeadAt: Time{l.DeadAt},
		Attempts: l.Attempts, Reason: string(l.Reason), Step: l.Step, LastError: l.Error, Generation: l.Generation,
	}
}

func deadGroupOf(g inbox.DeadGroup) DeadGroup {
	return DeadGroup{
		Group: g.Group, Type: g.Type, Reason: string(g.Reason), Error: g.Error, Count: g.Count,
		First: Time{g.First}, Last: Time{g.Last},
	}
}

// listOf turns a page into the API's words.
func listOf[From, To any](items []From, next inbox.Cursor, convert func(From) To) List[To] {
	l := List[To]{Items: make([]To, len(items)), Next: string(next)}
	for i, item := range items {
		l.Items[i] = convert(item)
	}
	return l
}

package receiver

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/internal/recipe"
	"github.com/hookonce/hookonce/internal/topic"
	"github.com/hookonce/hookonce/receiver/provider"
)

const (
	// maxContentType is the longest content type that is kept: AMQP's short string.
	maxContentType = 255
	// maxType is the longest type, in full, that fits into a message's headers.
	maxType = 16 << 10
)

// delivery is one event on its way through the steps: a request, or an item of
// one that was split.
type delivery struct {
	source  *source
	request *http.Request
	now     time.Time
	body    []byte
	wire    []byte // the body as it came, when it was compressed
	input   recipe.Input
	// signed is the request as the preset saw it.
	signed *provider.Request
	// headers are kept with the event; nil until they are needed.
	headers map[string]string
	// item is part of a batch: what is wrong with it is parked. named has an id
	// of its own, or is broken: the key "body" is not for it.
	item, named bool
	// syntax is why a body that may not be meant as JSON is none.
	syntax error
	claim  hookonce.Claim
	// guards is how many of the claim's last previous keys stand for what is
	// signed, not for the event.
	guards  int
	changed bool // a duplicate with another body
	// until is when waiting for the broker ends; zero: see publishContext.
	until time.Time
}

// open reads the body as far as the source's recipes need it.
func (d *delivery) open() *rejection {
	r := d.request
	d.input = recipe.Input{Source: d.source.name, Header: r.Header, Query: r.URL.RawQuery, ReceivedAt: d.now}
	return d.parse()
}

// identify fills in the claim, with type and key; false when the source does
// not want the type.
func (d *delivery) identify() (bool, *rejection) {
	s, r := d.source, d.request
	eventType := s.eventType.of(&d.input)
	if len(eventType) > maxType {
		if !d.item {
			return false, typeTooLong.because(fmt.Sprintf("at most %d bytes", maxType), nil)
		}
		eventType = eventType[:maxType]
	}
	if !s.wants(eventType) {
		return false, nil
	}
	if d.headers == nil {
		d.headers, _ = s.headers.kept(r.Header)
	}
	d.claim = hookonce.Claim{
		Event: hookonce.Event{
			Key: hookonce.Key{Source: s.name}, Type: eventType, ContentType: keptContentType(r.Header), Body: d.body,
			Header: d.headers, Context: keptContext(d.input.Context), ReceivedAt: d.now, Unmatched: s.unmatched,
			TraceParent: traceParent(r.Header),
		},
		Token: hookonce.NewToken(), Answer: s.answer, TTL: s.retention,
	}
	sum := sha256.Sum256(d.body)
	copy(d.claim.Fingerprint[:], sum[:])
	if rejected := d.findKey(); rejected != nil {
		return true, rejected
	}
	if d.claim.Event.Parked == "" {
		d.previousKeys()
		d.guard()
		if rejected := d.checkSchema(); rejected != nil {
			return true, rejected
		}
	}
	return true, nil
}

// parse reads the body as JSON or as a form where the source's recipes want it.
func (d *delivery) parse() *rejection {
	s := d.source
	wantsJSON := s.needsJSON || s.readsJSON || s.hash.canonical
	if !wantsJSON && !s.needsForm {
		return nil
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(d.body, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(text) == 0 {
		return nil
	}
	media := ""
	if text[0] != '{' {
		media, _, _ = mime.ParseMediaType(d.request.Header.Get("Content-Type"))
	}
	if s.needsForm && media == "application/x-www-form-urlencoded" {
		if form, err := url.ParseQuery(string(text)); err == nil {
			d.input.Form = form
		}
	}
	if !wantsJSON {
		return nil
	}
	doc := d.body
	if wrapped := d.input.Form[s.preset.FormJSON]; len(wrapped) == 1 {
		doc = []byte(wrapped[0]) // the field holds the document
	}
	err := jsonpath.ValidUnique(doc)
	if err == nil {
		d.input.JSON = doc
		return nil
	}
	// A body that says it is JSON must be: by its first character or its media
	// type. Any other only lacks what the recipes look for.
	if s.needsJSON && (text[0] == '{' || isJSON(media) || !errors.Is(err, jsonpath.ErrSyntax)) {
		return unreadable.because(err.Error(), nil)
	}
	d.syntax = err
	return nil
}

func isJSON(media string) bool {
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// findKey sets the claim's key from the first alternative that is present.
func (d *delivery) findKey() *rejection {
	s, c := d.source, &d.claim
	longest := hookonce.MaxKey
	if s.noDedup {
		longest -= receiptSize
	}
	for i := range s.keys {
		if s.keys[i].IsBody() {
			if d.named {
				continue
			}
			d.keyFromBody()
			return nil
		}
		id, ok := s.keys[i].Eval(&d.input)
		if !ok {
			continue
		}
		if len(id) > longest {
			if d.item {
				d.park("key too long")
				return nil
			}
			return keyTooLong.because(fmt.Sprintf("%s: at most %d bytes", s.keys[i], longest), nil)
		}
		c.Event.Key.ID = id
		if s.noDedup {
			d.ownEvent()
		}
		return nil
	}
	if s.noDedup {
		d.ownEvent() // a ping may say nothing at all
		return nil
	}
	if s.parkNoKey || d.item {
		d.park("no key")
		return nil
	}
	if d.syntax != nil {
		return unreadable.because("no key in "+s.keyNames+"; the body is no JSON: "+d.syntax.Error(), nil)
	}
	return noKey.because("none is present: "+s.keyNames, nil)
}

// park sets the delivery aside for a person, under its hash, so that a resend is
// parked once.
func (d *delivery) park(why string) {
	d.claim.Event.Key.ID = "!" + hexSum(d.body)
	d.claim.Event.Parked = why
	d.claim.Lookup, d.claim.Previous, d.guards = nil, nil, 0
}

const (
	// receiptSize is what a receipt id adds to a key.
	receiptSize = 17
	// ownTTL is how long the claim of an event is kept that nothing repeats.
	ownTTL = time.Hour
)

// ownEvent makes the delivery an event of its own.
func (d *delivery) ownEvent() {
	receipt := hookonce.NewToken()
	d.claim.Event.Key.ID = fmt.Sprintf("%s~%x", d.claim.Event.Key.ID, receipt[:8])
	d.claim.TTL = min(d.claim.TTL, ownTTL)
}

// keyFromBody claims the body's hash for the window. The event's own key is
// longer, so that an equal body after the window is another event.
func (d *delivery) keyFromBody() {
	s, c := d.source, &d.claim
	lookup := hookonce.Key{Source: s.name, ID: s.hash.key(d.body, d.input.JSON)}
	receipt := hookonce.NewToken()
	c.Lookup = &lookup
	c.Event.Key.ID = fmt.Sprintf("%s~%x", lookup.ID, receipt[:8])
	c.TTL = s.hash.window
}

// previousKeys adds what older recipes make of this delivery. One that gives
// the key itself, or nothing that could have been claimed, has no say.
func (d *delivery) previousKeys() {
	c := &d.claim
	for i := range d.source.previous {
		id, ok := d.source.previous[i].Eval(&d.input)
		key := hookonce.Key{Source: d.source.name, ID: id}
		if !ok || len(id) > hookonce.MaxKey || key == c.Claimed() || slices.Contains(c.Previous, key) {
			continue
		}
		c.Previous = append(c.Previous, key)
	}
}

// typeRule finds the type.
type typeRule struct {
	recipes  []recipe.Recipe
	constant string
	names    map[string]string
}

func (t *typeRule) of(in *recipe.Input) string {
	found := t.constant
	for i := range t.recipes {
		if text, ok := t.recipes[i].Eval(in); ok {
			found = text
			break
		}
	}
	if own, ok := t.names[found]; ok {
		return own
	}
	if found == "" {
		return "unknown"
	}
	return found
}

// wants tells whether the accept and ignore patterns let a type pass.
func (s *source) wants(eventType string) bool {
	if len(s.accept) == 0 && len(s.ignore) == 0 {
		return true
	}
	escaped := hookonce.EscapeType(eventType)
	return (len(s.accept) == 0 || matchesOne(s.accept, escaped)) && !matchesOne(s.ignore, escaped)
}

func matchesOne(patterns []topic.Pattern, escaped string) bool {
	for _, p := range patterns {
		if p.Match(escaped) {
			return true
		}
	}
	return false
}

func keptContentType(h http.Header) string {
	v := h.Get("Content-Type")
	if len(v) > maxContentType || !utf8.ValidString(v) {
		return ""
	}
	return v
}

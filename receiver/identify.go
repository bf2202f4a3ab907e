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
	"github.com/hookonce/hookonce/receiver/provider"
)

const (
	// maxContentType is the longest content type that is kept: AMQP's short string.
	maxContentType = 255
	// maxType is the longest type, in full, that fits into a message's headers.
	maxType = 16 << 10
)

// delivery is one request on its way through the steps.
type delivery struct {
	source  *source
	request *http.Request
	now     time.Time
	body    []byte
	input   recipe.Input
	// syntax is why a body that may not be meant as JSON is none.
	syntax  error
	claim   hookonce.Claim
	changed bool // a duplicate with another body
}

// verify checks the signature.
func (rc *Receiver) verify(d *delivery) *rejection {
	r := d.request
	err := d.source.verifier.Verify(&provider.Request{
		Method: r.Method, Target: r.RequestURI, PublicURL: rc.cfg.PublicURL, Host: r.Host, TLS: r.TLS != nil,
		Header: r.Header, Body: d.body, Now: d.now,
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, provider.ErrConfig):
		// Our fault: the sender shall come again when it is repaired.
		return misconfigured.because("", err)
	default:
		return badSignature.because("", err)
	}
}

// identify fills in the claim, with type and key; false when the source does
// not want the type.
func (d *delivery) identify() (bool, *rejection) {
	s, r := d.source, d.request
	d.input = recipe.Input{Source: s.name, Header: r.Header, Query: r.URL.RawQuery, ReceivedAt: d.now}
	if rejected := d.parse(); rejected != nil {
		return false, rejected
	}
	eventType := s.eventType.of(&d.input)
	if len(eventType) > maxType {
		return false, typeTooLong.because(fmt.Sprintf("at most %d bytes", maxType), nil)
	}
	if !s.wants(eventType) {
		return false, nil
	}
	headers, _ := s.headers.kept(r.Header)
	d.claim = hookonce.Claim{
		Event: hookonce.Event{
			Key: hookonce.Key{Source: s.name}, Type: eventType, ContentType: keptContentType(r.Header), Body: d.body,
			Header: headers, ReceivedAt: d.now, Unmatched: s.unmatched, TraceParent: traceParent(r.Header),
		},
		Token: hookonce.NewToken(), Answer: s.answer, TTL: s.retention,
	}
	sum := sha256.Sum256(d.body)
	copy(d.claim.Fingerprint[:], sum[:])
	if rejected := d.findKey(); rejected != nil {
		return true, rejected
	}
	d.previousKeys()
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
	err := jsonpath.ValidUnique(d.body)
	if err == nil {
		d.input.JSON = d.body
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
	for i := range s.keys {
		if s.keys[i].IsBody() {
			d.keyFromBody()
			return nil
		}
		id, ok := s.keys[i].Eval(&d.input)
		if !ok {
			continue
		}
		if len(id) > hookonce.MaxKey {
			return keyTooLong.because(fmt.Sprintf("%s: at most %d bytes", s.keys[i], hookonce.MaxKey), nil)
		}
		c.Event.Key.ID = id
		return nil
	}
	if s.parkNoKey {
		// Under its hash, so that a resend is parked once.
		c.Event.Key.ID = "!" + hexSum(d.body)
		c.Event.Parked = "no key"
		return nil
	}
	if d.syntax != nil {
		return unreadable.because("no key in "+s.keyNames+"; the body is no JSON: "+d.syntax.Error(), nil)
	}
	return noKey.because("none is present: "+s.keyNames, nil)
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
	constant string
	recipe   recipe.Recipe
	names    map[string]string
}

func (t *typeRule) of(in *recipe.Input) string {
	found, ok := t.recipe.Eval(in)
	if !ok {
		found = t.constant
	}
	if own, ok := t.names[found]; ok {
		return own
	}
	if found == "" {
		return "unknown"
	}
	return found
}

// wants tells whether the accept patterns let a type pass.
func (s *source) wants(eventType string) bool {
	if len(s.accept) == 0 {
		return true
	}
	escaped := hookonce.EscapeType(eventType)
	for _, p := range s.accept {
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

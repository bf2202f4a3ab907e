package provider

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Sample is how to make a delivery of a provider that a source with Source's
// settings accepts. In Body, Header and Query stand {id}, new for each event;
// {seconds} and {ms}, the Unix time of the event; {time}, the same as RFC 3339;
// and {now} and {now_ms}, the time of sending, which differs from copy to copy.
type Sample struct {
	// Source are lines of YAML for the source beside provider:, with test secrets.
	Source string
	// Secret is the test secret that Sign uses.
	Secret string
	Body   string
	// Header has a content type where the body is no JSON.
	Header map[string]string
	// Query is put behind the URL, with the same words and {secret}.
	Query string
	// Sign adds what proves the delivery. It is called for each copy.
	Sign func(d *Draft)
	// Unsigned: the body is not covered by what Sign adds.
	Unsigned bool
}

// Draft is a delivery in the making.
type Draft struct {
	URL    *url.URL
	Header http.Header
	Body   []byte
	Secret string
	ID     string
	// Made is when the event happened, Now when this copy is sent.
	Made, Now time.Time
}

// Copy makes one more copy of an event, signed as the provider would at now.
// With tamper, what the signature covers is altered, or, where the body is not
// covered, the credential. secret "" is the sample's own.
func (s Sample) Copy(target *url.URL, id, secret string, made, now time.Time, tamper bool) (*Draft, error) {
	if s.Sign == nil {
		return nil, fmt.Errorf("there is no sample of this provider's deliveries")
	}
	if secret == "" {
		secret = s.Secret
	}
	if tamper && s.Unsigned {
		secret = altered(secret)
	}
	u := *target
	d := &Draft{URL: &u, Header: http.Header{"Content-Type": {"application/json"}}, Secret: secret, ID: id, Made: made, Now: now}
	d.Body = []byte(d.fill(s.Body))
	for name, value := range s.Header {
		d.Header.Set(name, d.fill(value))
	}
	if s.Query != "" {
		query := strings.ReplaceAll(d.fill(s.Query), "{secret}", url.QueryEscape(secret))
		if u.RawQuery != "" {
			query = u.RawQuery + "&" + query
		}
		d.URL.RawQuery = query
	}
	s.Sign(d)
	if tamper && !s.Unsigned {
		d.alter()
	}
	return d, nil
}

// NewID makes an id for a sample.
func NewID() string {
	var raw [10]byte
	_, _ = rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

func (d *Draft) fill(text string) string {
	return strings.NewReplacer(
		"{id}", d.ID, "{seconds}", strconv.FormatInt(d.Made.Unix(), 10), "{ms}", strconv.FormatInt(d.Made.UnixMilli(), 10),
		"{time}", d.Made.UTC().Format(time.RFC3339), "{now}", d.seconds(), "{now_ms}", strconv.FormatInt(d.Now.UnixMilli(), 10),
	).Replace(text)
}

// seconds is the time of sending.
func (d *Draft) seconds() string { return strconv.FormatInt(d.Now.Unix(), 10) }

func (d *Draft) hmac(h func() hash.Hash, content string) []byte {
	m := hmac.New(h, []byte(d.Secret))
	m.Write([]byte(content))
	return m.Sum(nil)
}

// alter changes the event that the body names; a body that does not show its
// id is encrypted, and loses a character in its middle.
func (d *Draft) alter() {
	if d.ID != "" && bytes.Contains(d.Body, []byte(d.ID)) {
		d.Body = bytes.ReplaceAll(d.Body, []byte(d.ID), []byte(altered(d.ID)))
		return
	}
	if at := len(d.Body) / 2; at < len(d.Body) {
		d.Body[at] = altered(string(d.Body[at]))[0]
	}
}

// altered is another text of the same length.
func altered(text string) string {
	if text == "" {
		return "x"
	}
	last := byte('1')
	if text[len(text)-1] == last {
		last = '2'
	}
	return text[:len(text)-1] + string(last)
}

// Request is the draft as an HTTP request.
func (d *Draft) Request(ctx context.Context) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL.String(), bytes.NewReader(d.Body))
	if err != nil {
		return nil, err
	}
	r.Header = d.Header
	return r, nil
}

package recipe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/stringify"
)

// Input is what recipes read. Zero fields make their recipes absent.
type Input struct {
	Key, Source, Type string
	ReceivedAt        time.Time
	Header            http.Header
	// Query is the URL's query as received.
	Query string
	// JSON is the body when it is a document that jsonpath.Valid accepts; nil otherwise.
	JSON []byte
	// Context is a JSON object of what the parents of an item say; nil without.
	Context []byte
	// Form is the body when it is a form; nil otherwise.
	Form url.Values
}

// Eval computes the text; false when a part is absent. The recipe "body" is
// always absent here.
func (r *Recipe) Eval(in *Input) (string, bool) {
	if !r.template {
		if len(r.parts) == 0 {
			return "", false
		}
		return r.parts[0].eval(in)
	}
	out := make([]byte, 0, 128)
	for i := range r.parts {
		p := &r.parts[i]
		out = append(out, p.literal...)
		if p.kind == 0 {
			continue
		}
		value, ok := p.eval(in)
		if !ok {
			return "", false
		}
		out = r.appendEscaped(out, value)
	}
	return string(out), true
}

func (p *part) eval(in *Input) (string, bool) {
	var value string
	switch p.kind {
	case header:
		value = Header(in.Header, p.name)
	case query:
		value = queryValue(in.Query, p.name)
	case form:
		value = in.Form.Get(p.name)
	case json, context:
		doc := in.JSON
		if p.kind == context {
			doc = in.Context
		}
		v, ok := p.path.Get(doc)
		if !ok || !v.Kind.Scalar() {
			return "", false
		}
		value = v.Text()
	case stringified:
		text, err := stringify.JSON(bytes.TrimPrefix(in.JSON, []byte("\xef\xbb\xbf")))
		if err != nil {
			return "", false
		}
		sum := sha256.Sum256(text)
		return "sha256:" + hex.EncodeToString(sum[:]), true
	case key:
		value = in.Key
	case source:
		value = in.Source
	case eventType:
		value = in.Type
	case receivedAt:
		if !in.ReceivedAt.IsZero() {
			value = in.ReceivedAt.UTC().Format(time.RFC3339Nano)
		}
	}
	return value, strings.TrimSpace(value) != ""
}

// Header is the value of a request header; several lines are joined with ", ",
// which is what a proxy may make of them.
func Header(h http.Header, name string) string {
	values := h.Values(name)
	if len(values) == 1 {
		return values[0]
	}
	return strings.Join(values, ", ")
}

func queryValue(raw, name string) string {
	if raw == "" {
		return ""
	}
	// What cannot be parsed is skipped, the rest counts.
	values, _ := url.ParseQuery(raw)
	return values.Get(name)
}

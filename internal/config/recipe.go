package config

import (
	"net/http"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/jsonpath"
	"github.com/hookonce/hookonce/internal/recipe"
	"github.com/hookonce/hookonce/receiver/provider"
)

// checkKey says what is wrong with a recipe for a key: it reads the request.
func checkKey(text string) (why string) {
	if why := checkHeader(text); why != "" {
		return why
	}
	r, err := recipe.Parse(text)
	switch {
	case err != nil:
		return err.Error()
	case !r.FromRequest():
		return shown(text, false) + " is no part of a request: write \"header:NAME\", \"json:path\" or \"json:{path}:{path}\""
	}
	return ""
}

// checkValue says what is wrong with a recipe that reads a value from the
// request, which a hash of the body is not.
func checkValue(text string) (why string) {
	if text == "body" {
		return "a hash of the body says nothing here: write \"header:NAME\", \"json:path\" or \"json:{path}:{path}\""
	}
	return checkKey(text)
}

// builtinParams are the parameter values that are no recipes over the delivery.
var builtinParams = []string{"key", "source", "type", "body", "received_at"}

// checkParam says what is wrong with a parameter's value, which comes from a
// stored event: its headers, its body and what the batch around it said, no
// longer its URL.
func checkParam(text string) (why string) {
	if slices.Contains(builtinParams, text) {
		return ""
	}
	kind, _, _ := strings.Cut(text, ":")
	if kind == "header" || kind == "json" || kind == "context" {
		return checkKey(text)
	}
	return shown(text, false) + " is not a value: write one of " + strings.Join(builtinParams, ", ") +
		", or \"header:NAME\", \"json:path\" or \"json:{path}:{path}\""
}

// checkPath says what is wrong with a path into a JSON document.
func checkPath(path string) (why string) {
	if _, err := jsonpath.Parse(path); err != nil {
		return err.Error()
	}
	return ""
}

// checkHeader says what is wrong with the name in "header:NAME".
func checkHeader(text string) (why string) {
	name, ok := strings.CutPrefix(text, "header:")
	if !ok || strings.Contains(name, "{") || headerName(name) {
		return ""
	}
	return shown(text, false) + " names no header: write \"header:NAME\""
}

// headerName reports whether a text can be a header's name.
func headerName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// attemptHeaders are headers that are another one on each delivery of the same
// event, or the same on all, as far as their names do not tell.
var attemptHeaders = []string{
	"Authorization", "Date", "Host", "Via", "User-Agent", "Content-Length", "Content-Type", "Traceparent", "Tracestate", "Cf-Ray",
	"X-Amzn-Trace-Id", "X-Forwarded-For", "X-Real-Ip", "X-Slack-Retry-Num", "X-Slack-Retry-Reason", "Square-Retry-Number", "Square-Retry-Reason",
}

// volatileKey says why a recipe cannot be a key: redeliveries of one event would
// get different ones.
func volatileKey(text string, s *Source, preset provider.Preset) (why string) {
	if text == "body" {
		if preset.FreshBody {
			return "provider " + preset.Name + " makes the body anew for each attempt, so that its hash finds no duplicate: leave it out"
		}
		return ""
	}
	r, err := recipe.Parse(text)
	if err != nil {
		return ""
	}
	for _, part := range r.Parts() {
		if why, known := preset.Volatile[part]; known {
			return shown(part, false) + " " + why + ": leave key out for the provider's own"
		}
		name, isHeader := strings.CutPrefix(part, "header:")
		lower := strings.ToLower(name)
		switch {
		case !isHeader:
		case strings.Contains(lower, "signature") || strings.Contains(lower, "hmac") || strings.EqualFold(name, s.Verify.Header):
			return shown(part, false) + " is a signature: senders make it anew for each attempt, or it is just a hash of the body. Name the event's id"
		case strings.HasSuffix(lower, "timestamp") || strings.EqualFold(name, s.Verify.Timestamp):
			return shown(part, false) + " is the time of sending, another one for each attempt: name the event's id"
		case slices.Contains(attemptHeaders, http.CanonicalHeaderKey(name)):
			return shown(part, false) + " tells of the delivery, not of the event, and may be another one for each attempt: name the event's id"
		}
	}
	return ""
}

package receiver

import (
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hookonce/hookonce/internal/recipe"
)

// maxKept is how many bytes of names and values are kept with an event.
const maxKept = 8 << 10

// headerFilter chooses the request headers that stay with an event.
type headerFilter struct {
	keep map[string]bool // nil: all but the refused
	drop map[string]bool
}

func newHeaderFilter(keep, credentials []string) headerFilter {
	f := headerFilter{drop: map[string]bool{
		// Credentials.
		"Authorization": true, "Cookie": true,
		// Hop-by-hop (RFC 9110), and what describes the transfer, not the event:
		// the body is kept decoded.
		"Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
		"Content-Length": true, "Content-Encoding": true, "Expect": true,
	}}
	for _, name := range credentials {
		f.drop[http.CanonicalHeaderKey(name)] = true
	}
	if keep != nil {
		f.keep = make(map[string]bool, len(keep))
		for _, name := range keep {
			f.keep[http.CanonicalHeaderKey(name)] = true
		}
	}
	return f
}

// kept are the headers of an event, and how many were left out because they
// would be more than [maxKept]: then the first in the order of names stay.
func (f headerFilter) kept(h http.Header) (map[string]string, int) {
	listed := connectionListed(h)
	out := make(map[string]string, len(h))
	size := 0
	for name := range h {
		if f.keep != nil && !f.keep[name] || f.drop[name] || strings.HasPrefix(name, "Proxy-") || slices.Contains(listed, name) {
			continue
		}
		value := recipe.Header(h, name)
		if !utf8.ValidString(value) {
			value = strings.ToValidUTF8(value, "\uFFFD")
		}
		out[name] = value
		size += len(name) + len(value)
	}
	if size <= maxKept {
		return out, 0
	}
	return shrink(out)
}

// connectionListed are the headers that Connection names as hop-by-hop.
func connectionListed(h http.Header) []string {
	var names []string
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			names = append(names, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	return names
}

func shrink(all map[string]string) (map[string]string, int) {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	out := make(map[string]string, len(all))
	size := 0
	for _, name := range names {
		if n := len(name) + len(all[name]); size+n <= maxKept {
			out[name] = all[name]
			size += n
		}
	}
	return out, len(all) - len(out)
}

// headerSize is about how many bytes the headers had on the wire.
func headerSize(h http.Header) int {
	size := 0
	for name, values := range h {
		for _, value := range values {
			size += len(name) + len(value) + 4
		}
	}
	return size
}

// traceParent is the request's W3C trace context, "" when it has none or a
// malformed one.
func traceParent(h http.Header) string {
	v := h["Traceparent"]
	if len(v) != 1 || len(v[0]) != 55 {
		return ""
	}
	for i := range len(v[0]) {
		c := v[0][i]
		dash := i == 2 || i == 35 || i == 52
		if dash != (c == '-') || !dash && (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
	}
	return v[0]
}

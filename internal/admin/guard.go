package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// requireToken lets only requests through that show the token; all when there
// is none. Digests are compared, so that the time tells nothing of the token,
// its length included.
func requireToken(token string, next http.Handler) http.Handler {
	if token == "" {
		return next
	}
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, shown, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(shown)))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 || !strings.EqualFold(scheme, "Bearer") {
			w.Header().Set("WWW-Authenticate", `Bearer realm="hookonce"`)
			problem(w, http.StatusUnauthorized, "the admin token is missing or wrong: send it as Authorization: Bearer TOKEN")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// requireLoopbackName answers requests only that name this machine by a
// loopback name: a page whose own name resolves to 127.0.0.1 gets nothing.
func requireLoopbackName(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !loopbackName(r.Host) {
			problem(w, http.StatusMisdirectedRequest,
				"without an admin token only 127.0.0.1, [::1] and localhost are answered: use one of them, or set admin.token")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func loopbackName(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return host == "127.0.0.1" || host == "::1" || strings.EqualFold(host, "localhost")
}

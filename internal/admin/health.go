package admin

import (
	"context"
	"net/http"
)

// Check is one thing that readiness depends on.
type Check struct {
	Name   string `json:"name"` // "store", "broker", "inbox", ...
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // why not, or what is degraded
}

var probePaths = []string{"/healthz", "/readyz", "/metrics"}

// Probes serves /healthz, /readyz and /metrics alone, for a listener that has
// nothing to protect. /healthz answers 200 as long as the process serves;
// /readyz answers 200 or 503 with the checks as JSON.
func Probes(health func(ctx context.Context) []Check, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer := struct {
			Ready  bool    `json:"ready"`
			Checks []Check `json:"checks"`
		}{Ready: true, Checks: []Check{}}
		if health != nil {
			answer.Checks = append(answer.Checks, health(r.Context())...)
		}
		for _, c := range answer.Checks {
			answer.Ready = answer.Ready && c.OK
		}
		status := http.StatusOK
		if !answer.Ready {
			status = http.StatusServiceUnavailable
		}
		writeJSON(w, status, answer)
	})
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	return plainErrors(mux)
}

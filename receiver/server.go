package receiver

import (
	"log/slog"
	"net/http"
	"time"
)

// NewHTTPServer is an HTTP server with the time limits that a listener open
// to the internet needs: headers within 5 s, the whole request within 15 s,
// the answer within 30 s of the headers, idle connections closed after 2 min,
// headers of at most 64 KiB. Its own complaints go to logger (nil: slog.Default()).
func NewHTTPServer(addr string, h http.Handler, logger *slog.Logger) *http.Server {
	if logger == nil {
		logger = slog.Default()
	}
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelInfo),
	}
}

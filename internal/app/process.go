package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/telemetry"
)

// process is what one running program has once: configuration, logger,
// metrics, and what has to be closed at the end.
type process struct {
	cfg      *config.Config
	log      *slog.Logger
	stdout   io.Writer
	registry *prometheus.Registry
	metrics  *telemetry.Metrics
	closers  []func() error
	// reload reads the configuration again; nil where nobody needs it.
	reload func() (*config.Config, error)
}

func newProcess(cfg *config.Config, log *slog.Logger, stdout io.Writer) *process {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &process{cfg: cfg, log: log, stdout: stdout, registry: registry, metrics: telemetry.NewMetrics(registry)}
}

// runProcess runs a role to its end and closes what it opened, last first.
func runProcess(ctx context.Context, cfg *config.Config, log *slog.Logger, stdout io.Writer, run role) error {
	RaiseHeapFloor()
	p := newProcess(cfg, log, stdout)
	return errors.Join(run(ctx, p), p.close())
}

func (p *process) onClose(fn func() error) { p.closers = append(p.closers, fn) }

func (p *process) close() error {
	var errs []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	p.closers = nil
	return errors.Join(errs...)
}

// await repeats try until it succeeds or startup_timeout has passed; the error
// is the last one. A server that starts later than we do is no reason to fail.
func (p *process) await(ctx context.Context, what string, try func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.StartupTimeout)
	defer cancel()
	delay, told := 50*time.Millisecond, false
	for {
		err := try(ctx)
		if err == nil || hopeless(err) {
			return err
		}
		if !told && ctx.Err() == nil {
			p.log.Warn("waiting for the "+what, "err", err, "startup_timeout", p.cfg.StartupTimeout)
			told = true
		}
		timer := time.NewTimer(delay/2 + rand.N(delay/2))
		select {
		case <-ctx.Done():
			timer.Stop()
			if errors.Is(err, ctx.Err()) {
				err = context.Cause(ctx)
			}
			return fmt.Errorf("the %s did not answer within %s: %w", what, p.cfg.StartupTimeout, err)
		case <-timer.C:
		}
		delay = min(delay*2, time.Second)
	}
}

// listen opens an address; the error names the setting that says otherwise.
func (p *process) listen(addr, setting string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%s %s cannot be opened: %w; is another process there? choose another address with --set %s=HOST:PORT", setting, addr, err, setting)
	}
	return l, nil
}

// httpStage serves until its context ends, then lets requests in work finish.
func (p *process) httpStage(name string, l net.Listener, s *http.Server, tls config.TLS) stage {
	return stage{name, func(ctx context.Context) error {
		failed := make(chan error, 1)
		go func() {
			if tls.Cert != "" {
				failed <- s.ServeTLS(l, tls.Cert, tls.Key)
				return
			}
			failed <- s.Serve(l)
		}()
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
		}
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.ShutdownTimeout)
		defer cancel()
		err := s.Shutdown(drain)
		if err != nil {
			err = errors.Join(err, s.Close())
		}
		<-failed
		return err
	}}
}

package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/gin-gonic/gin"
)

// Receiver answers webhook deliveries. It is safe for concurrent use and does
// not change; make a new one for new settings.
type Receiver struct {
	cfg     Config
	sources []*source
	inWork  atomic.Int64
	alarm   limiter
	engine  *gin.Engine
	// confirmed serves sources that answer after the broker's confirm.
	confirmed confirmed
}

// New checks the settings and makes a Receiver. The error names every source
// that is wrong and what to write instead.
func New(cfg Config) (*Receiver, error) {
	cfg.setDefaults()
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	rc := &Receiver{cfg: cfg}
	var errs []error
	if cfg.Store == nil {
		errs = append(errs, errors.New("receiver: Config.Store is nil"))
	}
	names, paths := map[string]bool{}, map[string]bool{}
	for _, sc := range cfg.Sources {
		s, err := newSource(sc)
		switch {
		case err != nil:
		case names[s.name]:
			err = errors.New("there are two sources of this name")
		case paths[s.path]:
			err = fmt.Errorf("another source has the path %s", s.path)
		case s.confirm && cfg.Relay != nil && (cfg.Confirmer == nil || cfg.Publisher == nil):
			err = errors.New("ack: confirm needs a broker that confirms")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("source %s: %w", sc.Name, err))
			continue
		}
		names[s.name], paths[s.path] = true, true
		s.confirm = s.confirm && cfg.Relay != nil
		s.metrics = newSourceMetrics(cfg.Metrics, s.name)
		rc.sources = append(rc.sources, s)
	}
	engine, err := rc.newEngine()
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	rc.engine = engine
	return rc, nil
}

// Handler serves the sources' paths: POST, and what a
// provider asks with before it delivers; everything else is 404 or 405.
func (rc *Receiver) Handler() http.Handler { return rc.engine }

func (rc *Receiver) newEngine() (*gin.Engine, error) {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.RedirectTrailingSlash = false // a redirect is a failure to every sender
	engine.RedirectFixedPath = false
	engine.UseRawPath = true
	engine.HandleMethodNotAllowed = true
	if err := engine.SetTrustedProxies(rc.cfg.TrustedProxies); err != nil {
		return nil, fmt.Errorf("trusted_proxies: %w", err)
	}
	engine.Use(rc.recover)
	engine.NoRoute(func(c *gin.Context) { unknownPath.because("", nil).write(c.Writer) })
	engine.NoMethod(func(c *gin.Context) { wrongMethod.because("", nil).write(c.Writer) })
	for _, s := range rc.sources {
		engine.POST(s.path, func(c *gin.Context) { rc.serve(c, s) })
		for _, method := range s.preset.Methods {
			engine.Handle(method, s.path, func(c *gin.Context) { rc.serveProbe(c, s) })
		}
	}
	return engine, nil
}

package receiver

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/hookonce/hookonce"
)

// reply is the answer to a request that was not rejected.
type reply struct {
	outcome  outcome
	answer   hookonce.Answer
	key      hookonce.Key // zero: no key was looked for
	replayed bool
	// contentType is for a body whose first character does not tell it.
	contentType string
	// items are how many of a request's events had which outcome; nil when it was
	// not split.
	items *[outcomes]int
}

// serve handles one delivery from shedding to answer.
func (rc *Receiver) serve(c *gin.Context, s *source) {
	start := time.Now()
	d := delivery{source: s, request: c.Request, now: rc.cfg.Now()}
	var r reply
	rejected := s.admit(c)
	if rejected == nil {
		r, rejected = rc.work(&d, c.Writer)
	}
	rc.finish(c, &d, r, rejected, start)
}

// finish answers, counts and logs a request.
func (rc *Receiver) finish(c *gin.Context, d *delivery, r reply, rejected *rejection, start time.Time) {
	if rejected != nil {
		r.outcome = rejected.outcome
		rejected.write(c.Writer)
	} else {
		r.write(c.Writer)
	}
	d.source.metrics.note(&r, time.Since(start))
	rc.log(c, d, r, rejected)
}

// admit looks at the sender's address.
func (s *source) admit(c *gin.Context) *rejection {
	if s.allowed == nil || s.allowed.has(c.ClientIP()) {
		return nil
	}
	return wrongAddress.because("", nil)
}

// work runs the steps within the bound on requests in work.
func (rc *Receiver) work(d *delivery, w http.ResponseWriter) (reply, *rejection) {
	defer rc.inWork.Add(-1)
	if rc.inWork.Add(1) > int64(rc.cfg.MaxInWork) {
		return reply{}, overloaded.because("", nil)
	}
	if rejected := rc.read(d, w); rejected != nil {
		return reply{}, rejected
	}
	answer, rejected := rc.authenticate(d)
	if rejected != nil {
		return reply{}, rejected
	}
	if answer != nil {
		return handshakeReply(answer)
	}
	if rejected := d.open(); rejected != nil {
		return reply{}, rejected
	}
	if d.source.preset.Split != nil {
		items, split, rejected := d.split()
		if rejected != nil {
			return reply{}, rejected
		}
		if split {
			return rc.acceptItems(d, items)
		}
	}
	wanted, rejected := d.identify()
	if rejected != nil {
		return reply{}, rejected
	}
	if !wanted {
		return reply{outcome: filtered, answer: d.source.answer}, nil
	}
	return rc.accept(d)
}

// log writes one line for each request. Keys are logged, bodies, signatures
// and secrets never.
func (rc *Receiver) log(c *gin.Context, d *delivery, r reply, rejected *rejection) {
	level, message := slog.LevelDebug, "delivery accepted"
	if rejected != nil {
		level, message = slog.LevelInfo, "delivery rejected"
		if rejected.status >= http.StatusInternalServerError && rc.alarm.allow(time.Now()) {
			level = slog.LevelWarn
			if rejected.problem == misconfigured {
				level = slog.LevelError // a person has to act
			}
		}
	}
	if !rc.cfg.Logger.Enabled(c.Request.Context(), level) {
		return
	}
	ctx := context.WithoutCancel(c.Request.Context())
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("source", d.source.name), slog.String("outcome", r.outcome.String()))
	if d.claim.Event.Key.ID != "" {
		attrs = append(attrs, slog.String("key", d.claim.Event.Key.Escaped()), slog.String("type", d.claim.Event.Type))
	}
	if r.items != nil {
		attrs = append(attrs, slog.Int("new", r.items[accepted]), slog.Int("duplicate", r.items[duplicate]),
			slog.Int("filtered", r.items[filtered]), slog.Int("parked", r.items[parked]))
	}
	if d.changed {
		attrs = append(attrs, slog.Bool("changed_body", true))
	}
	if rejected != nil {
		attrs = append(attrs, slog.Int("status", rejected.status), slog.String("reason", rejected.name), slog.String("peer", c.ClientIP()))
		if rejected.err != nil {
			attrs = append(attrs, slog.Any("err", rejected.err))
		}
	}
	rc.cfg.Logger.LogAttrs(ctx, level, message, attrs...)
}

// recover answers a panic with 500 and logs the stack, but nothing of the request.
func (rc *Receiver) recover(c *gin.Context) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler {
			panic(v)
		}
		rc.cfg.Logger.Error("receiver panicked", "err", v, "stack", string(debug.Stack()))
		if !c.Writer.Written() {
			internal.because("", nil).write(c.Writer)
		}
	}()
	c.Next()
}

// limiter lets one event pass each second.
type limiter struct{ last atomic.Int64 }

func (l *limiter) allow(now time.Time) bool {
	last := l.last.Load()
	return now.UnixNano()-last >= int64(time.Second) && l.last.CompareAndSwap(last, now.UnixNano())
}

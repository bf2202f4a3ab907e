package receiver

import (
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/hookonce/hookonce/receiver/provider"
)

// authenticate answers what the provider asks before it delivers, and checks
// the signature of what it delivers. With an answer there is nothing to accept.
func (rc *Receiver) authenticate(d *delivery) (*provider.Reply, *rejection) {
	s := d.source
	d.signed = rc.providerRequest(d)
	if s.preset.Probe != nil {
		if answer, ok := s.preset.Probe(d.signed, s.settings); ok {
			return &answer, nil
		}
	}
	if rejected := d.verify(); rejected != nil {
		return nil, rejected
	}
	if s.preset.Handshake != nil {
		if answer, ok := s.preset.Handshake(d.signed, s.settings); ok {
			return &answer, nil
		}
	}
	if d.signed.Plain != nil {
		d.body = d.signed.Plain
	}
	return nil, nil
}

func (rc *Receiver) providerRequest(d *delivery) *provider.Request {
	r := d.request
	return &provider.Request{
		Method: r.Method, Target: r.RequestURI, PublicURL: rc.cfg.PublicURL, Host: r.Host, TLS: r.TLS != nil,
		Header: r.Header, Body: d.body, Wire: d.wire, Now: d.now,
	}
}

func handshakeReply(answer *provider.Reply) (reply, *rejection) {
	if !success(answer.Status) {
		return reply{}, wrongToken.because("", nil)
	}
	return reply{outcome: handshake, answer: answer.Answer, contentType: answer.ContentType}, nil
}

// verify checks the signature.
func (d *delivery) verify() *rejection {
	err := d.source.verifier.Verify(d.signed)
	switch {
	case err == nil:
		if d.signed.Old {
			d.source.metrics.oldSecret.Inc()
		}
		return nil
	case errors.Is(err, provider.ErrConfig):
		// Our fault: the sender shall come again when it is repaired.
		return misconfigured.because("", err)
	default:
		return badSignature.because("", err)
	}
}

// serveProbe answers a request of another method than POST: a handshake, or
// nothing.
func (rc *Receiver) serveProbe(c *gin.Context, s *source) {
	start := time.Now()
	d := delivery{source: s, request: c.Request, now: rc.cfg.Now()}
	answer, ok := s.preset.Probe(rc.providerRequest(&d), s.settings)
	if !ok {
		wrongMethod.because("", nil).write(c.Writer)
		return
	}
	r, rejected := handshakeReply(&answer)
	rc.finish(c, &d, r, rejected, start)
}

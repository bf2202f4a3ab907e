package config

import (
	"time"

	"github.com/hookonce/hookonce/consumer/effect"
)

// Effect is one named step of a group; exactly one of SQL, Email, Forward.
type Effect struct {
	Name    string            `yaml:"name"`
	Was     []string          `yaml:"was"`
	SQL     StringList        `yaml:"sql"` // one statement or a list
	Params  map[string]string `yaml:"params"`
	Email   *Email            `yaml:"email"`
	Forward *Forward          `yaml:"forward"`

	When        string        `yaml:"when"`         // expression over json, headers, key, source, type; empty: always
	OncePer     string        `yaml:"once_per"`     // path or template; done once for each value
	OnlyLatest  bool          `yaml:"only_latest"`  // skip what is older than what was applied; needs the source's entity and version
	OnUnknown   string        `yaml:"on_unknown"`   // rerun (default) | park; email and forward only
	RerunWithin time.Duration `yaml:"rerun_within"` // 20h
	Timeout     time.Duration `yaml:"timeout"`      // of one attempt, waiting for a rate included; 60s, more with a low rate
	Line        int           `yaml:"-"`
}

// Email is one message over SMTP. Addresses, subject and the attachments' names
// are texts, paths ("json:order.email", "header:X-Email") or templates.
type Email struct {
	SMTP        Secret        `yaml:"smtp"` // smtp://, smtp+tls:// or smtps://, with user:password@
	From        string        `yaml:"from"`
	To          StringList    `yaml:"to"`
	CC          StringList    `yaml:"cc"`
	BCC         StringList    `yaml:"bcc"`
	ReplyTo     string        `yaml:"reply_to"`
	Subject     string        `yaml:"subject"`
	Text        string        `yaml:"text"` // template file, relative to the configuration file; text, html or both
	HTML        string        `yaml:"html"`
	Attachments []*Attachment `yaml:"attachments"`
	Timeout     time.Duration `yaml:"timeout"` // of one sending; 30s
	Rate        Rate          `yaml:"rate"`
}

// Attachment is a file that the body holds as base64.
type Attachment struct {
	Name        string `yaml:"name"`
	ContentType string `yaml:"content_type"` // application/octet-stream
	Path        string `yaml:"path"`         // "json:order.pdf"
}

// Forward is one POST of the event's body.
type Forward struct {
	URL          Secret        `yaml:"url"`
	Secret       SecretList    `yaml:"secret"`  // signs as in Standard Webhooks; one or a list while they are exchanged
	Timeout      time.Duration `yaml:"timeout"` // of one request; 10s
	Rate         Rate          `yaml:"rate"`
	AllowPrivate StringList    `yaml:"allow_private"` // networks that the target may be in although they are not public
	Success      string        `yaml:"success"`       // expression over json, headers, status that a 2xx answer must satisfy too
	Headers      StringList    `yaml:"headers"`       // original headers to pass on
}

// Rate is how often a process may do something; in YAML 50/s, 100/m or 1000/h.
type Rate struct {
	effect.Rate `yaml:"-"`
}

func (r *Rate) setText(text string) (err error) {
	r.Rate, err = effect.ParseRate(text)
	return err
}

// Spec is the e-mail as the effect takes it; dir is the folder of its templates.
func (e *Email) Spec(dir string) effect.Email {
	out := effect.Email{
		SMTP: e.SMTP.Reveal(), From: e.From, To: e.To, CC: e.CC, BCC: e.BCC, ReplyTo: e.ReplyTo, Subject: e.Subject,
		Text: e.Text, HTML: e.HTML, Dir: dir, Timeout: e.Timeout, Rate: e.Rate.Rate,
	}
	for _, a := range e.Attachments {
		out.Attachments = append(out.Attachments, effect.Attachment(*a))
	}
	return out
}

// Spec is the request as the effect takes it.
func (f *Forward) Spec() effect.Forward {
	out := effect.Forward{
		URL: f.URL.Reveal(), Timeout: f.Timeout, Rate: f.Rate.Rate,
		AllowPrivate: f.AllowPrivate, Success: f.Success, Headers: f.Headers,
	}
	for _, s := range f.Secret {
		out.Secrets = append(out.Secrets, s.Reveal())
	}
	return out
}

// Orders are the sources whose events say which version of what they bring.
func (c *Config) Orders() map[string]effect.Order {
	out := map[string]effect.Order{}
	for name, s := range c.Sources {
		if s.Entity != "" && s.Version != "" {
			out[name] = effect.Order{Entity: s.Entity, Version: s.Version}
		}
	}
	return out
}

// own is how long the effect itself may take, and how often it may happen.
func (e *Effect) own() (time.Duration, Rate) {
	switch {
	case e.Email != nil:
		return e.Email.Timeout, e.Email.Rate
	case e.Forward != nil:
		return e.Forward.Timeout, e.Forward.Rate
	}
	return 0, Rate{}
}

// needs is how long one attempt can take when all workers of the group wait
// for their turn under the effect's rate.
func (e *Effect) needs(concurrency int) time.Duration {
	own, rate := e.own()
	if rate.Count > 0 {
		own += time.Duration(concurrency) * (rate.Per / time.Duration(rate.Count))
	}
	return own
}

func (l *loader) fillEffect(e *Effect, at string, concurrency int) {
	e.Line = l.at[at].Line
	if e.Email != nil {
		fill(l, &e.Email.Timeout, at+".email.timeout", 30*time.Second)
	}
	if e.Forward != nil {
		fill(l, &e.Forward.Timeout, at+".forward.timeout", 10*time.Second)
	}
	if e.Email != nil || e.Forward != nil {
		fill(l, &e.OnUnknown, at+".on_unknown", "rerun")
		if e.OnUnknown == "rerun" {
			fill(l, &e.RerunWithin, at+".rerun_within", 20*time.Hour)
		}
	}
	fill(l, &e.Timeout, at+".timeout", max(time.Minute, e.needs(concurrency)+10*time.Second))
}

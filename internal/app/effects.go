package app

import (
	"io"

	"github.com/hookonce/hookonce/consumer"
	"github.com/hookonce/hookonce/consumer/effect"
	"github.com/hookonce/hookonce/internal/config"
)

// compiled is an effect as a step, and what it would do with an event.
type compiled struct {
	consumer.Step
	preview func(w io.Writer, t consumer.Try) error
}

// compile makes a step of a configured effect.
func compile(cfg *config.Config, e *config.Effect) (compiled, error) {
	c := compiled{Step: consumer.Step{
		Name: e.Name, Was: e.Was, Timeout: e.Timeout,
		OnUnknown: consumer.OnUnknown(e.OnUnknown), RerunWithin: e.RerunWithin,
	}}
	var err error
	switch {
	case e.Email != nil:
		var m *effect.Mailer
		if m, err = e.Email.Spec(cfg.Dir).Compile(); err == nil {
			c.Do, c.preview = m.Do, m.Preview
		}
	case e.Forward != nil:
		var f *effect.Forwarder
		if f, err = e.Forward.Spec().Compile(); err == nil {
			c.Do, c.preview = f.Do, f.Preview
		}
	default:
		err = c.sql(cfg, e)
	}
	if err == nil && e.When != "" {
		c.When, err = effect.CompileWhen(e.When)
	}
	if err == nil && e.OncePer != "" {
		c.OncePer, err = effect.CompileOncePer(e.OncePer)
	}
	if err == nil && e.OnlyLatest {
		c.OnlyLatest, err = effect.CompileOnlyLatest(cfg.Orders())
	}
	return c, err
}

func (c *compiled) sql(cfg *config.Config, e *config.Effect) error {
	s := effect.SQL{Statements: e.SQL, Params: e.Params, Flavor: effect.SQLite}
	if cfg.Inbox.Kind == config.Postgres {
		s.Flavor = effect.Postgres
	}
	var err error
	c.Statements, err = s.Compile()
	c.preview = func(w io.Writer, t consumer.Try) error { return s.Preview(w, t.Event) }
	return err
}

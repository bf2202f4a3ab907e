package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/admin"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/rabbit"
	"github.com/hookonce/hookonce/internal/store/sqlite"
)

// operator is what operator commands have in common: where the admin API is,
// and how to print.
type operator struct {
	*cli
	admin, token string
	asJSON       bool
}

func (o *operator) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.admin, "admin", "", "URL of a running admin API (default: the process that owns the SQLite files, else the databases of the configuration)")
	f.StringVar(&o.token, "token", "", "its token (default $HOOKONCE_ADMIN_TOKEN)")
	f.BoolVar(&o.asJSON, "json", false, "one JSON object a line")
}

// with runs fn on a client of the admin API: of the one named, of the running
// process that owns the SQLite files, or of one made here over the databases.
func (o *operator) with(ctx context.Context, fn func(c *admin.Client) error) error {
	token := o.token
	if token == "" {
		token = os.Getenv("HOOKONCE_ADMIN_TOKEN")
	}
	if o.admin != "" {
		return o.told(fn(&admin.Client{BaseURL: o.admin, Token: token}), o.admin)
	}
	cfg, log, err := o.load(config.Operator)
	if err != nil {
		return err
	}
	if token == "" {
		token = cfg.Admin.Token.Reveal()
	}
	if cfg.Inbox.Kind == config.SQLite {
		if url, err := owner(cfg.Inbox.SQLite); err != nil || url != "" {
			if err != nil {
				return err
			}
			return o.told(fn(&admin.Client{BaseURL: url, Token: token}), url)
		}
	}
	return runProcess(ctx, cfg, log, o.stdout, func(ctx context.Context, p *process) error {
		return p.openLocally(ctx, fn)
	})
}

// told gives a failure to connect its address and the way out.
func (o *operator) told(err error, url string) error {
	var p *admin.Problem
	if err == nil || errors.As(err, &p) || !strings.Contains(err.Error(), "connection refused") {
		return err
	}
	return fmt.Errorf("%w; is the process at %s running? name another with --admin URL", err, url)
}

// owner is the admin URL of the process that owns a SQLite file; empty when
// nobody does.
func owner(path string) (string, error) {
	info, held, err := sqlite.ReadLock(path)
	switch {
	case err != nil || !held:
		return "", err
	case info.Admin == "":
		return "", fmt.Errorf("%s is in use by process %d, which has no admin API", path, info.PID)
	}
	return info.Admin, nil
}

// openLocally runs fn on an admin API over the databases themselves, for an
// operator where no process is running.
func (p *process) openLocally(ctx context.Context, fn func(c *admin.Client) error) error {
	if _, err := os.Stat(p.cfg.Inbox.SQLite); p.cfg.Inbox.Kind == config.SQLite && err != nil {
		return fmt.Errorf("no inbox at %s (%w); start hookonce there first, or name another with --config or --admin", p.cfg.Inbox.SQLite, errNotFound)
	}
	in, err := p.openInbox(ctx, true, "")
	if err != nil {
		return err
	}
	call := func(ctx context.Context, q admin.Sender) error {
		s := admin.New(admin.Options{Inbox: in, Queue: q, Groups: sortedKeys(p.cfg.Consumers), Logger: p.log})
		return fn(&admin.Client{BaseURL: admin.LocalURL, Transport: admin.HandlerTransport(s.Handler())})
	}
	if p.cfg.Broker.Kind == config.Embedded {
		groups, err := routes(p.cfg)
		if err != nil {
			return err
		}
		store, err := p.openSQLite(ctx, groups, "")
		if err != nil {
			return err
		}
		return call(ctx, store)
	}
	return p.overRabbit(ctx, call)
}

// overRabbit runs fn while a publishing connection is kept.
func (p *process) overRabbit(ctx context.Context, fn func(ctx context.Context, q admin.Sender) error) error {
	cfg := p.rabbitConfig("hookonce operator")
	moves := rabbit.NewPublisher(cfg)
	q := rabbit.NewQueue(cfg, moves)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return runStages(ctx,
		stage{"command", func(ctx context.Context) error { return fn(ctx, q) }},
		stage{"publisher", moves.Run},
	)
}

// printer writes what a command found.
func (o *operator) printer() printer { return printer{w: o.stdout, asJSON: o.asJSON} }

// answered marks what the admin API refuses as wrong use.
func answered(err error) error {
	var p *admin.Problem
	if errors.As(err, &p) && p.Status == http.StatusBadRequest {
		return usageError{err}
	}
	return err
}

// printer writes JSON lines or aligned columns.
type printer struct {
	w      io.Writer
	asJSON bool
}

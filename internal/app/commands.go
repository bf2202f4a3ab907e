package app

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/inbox"
)

// version is set by the build.
var version = "dev"

func (c *cli) operatorCommands() []*cobra.Command {
	return []*cobra.Command{
		c.eventsCommand(), c.effectsCommand(), c.deadCommand(), c.pauseCommand(), c.resumeCommand(), c.migrateCommand(), c.configCommand(),
		c.providersCommand(), c.sendCommand(), c.explainCommand(), c.versionCommand(),
	}
}

func (c *cli) migrateCommand() *cobra.Command {
	migrate := &cobra.Command{Use: "migrate", Short: "Bring the databases to this version's schema", RunE: needsSubcommand}
	migrate.AddCommand(&cobra.Command{
		Use: "up", Short: "Migrate every SQL database named in the configuration", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := c.load(config.Operator)
			if err != nil {
				return err
			}
			return runProcess(cmd.Context(), cfg, log, c.stdout, migrateUp)
		},
	})
	return migrate
}

// migrateUp migrates store and inbox. SQLite files migrate themselves when a
// process opens them, so that nothing is left to do for them.
func migrateUp(ctx context.Context, p *process) error {
	if kind := p.cfg.Store.Kind; kind == config.Postgres || kind == config.Hybrid {
		err := p.await(ctx, "store", func(ctx context.Context) error {
			store, err := p.rawPostgresStore(ctx)
			if err != nil {
				return err
			}
			return errors.Join(store.Migrate(ctx), store.Close())
		})
		if err != nil {
			return err
		}
		fmt.Fprintln(p.stdout, "store: up to date")
	}
	if p.cfg.Inbox.Kind != config.Postgres {
		fmt.Fprintln(p.stdout, "inbox: a SQLite file migrates itself; nothing to do")
		return nil
	}
	db, dialect, err := p.inboxDB(ctx, false, "")
	if err != nil {
		return err
	}
	p.onClose(db.Close)
	if err := p.await(ctx, "inbox", db.PingContext); err != nil {
		return err
	}
	if err := inbox.New(db, dialect, inbox.Options{Schema: p.cfg.Inbox.Schema}).Migrate(ctx); err != nil {
		return err
	}
	fmt.Fprintln(p.stdout, "inbox: up to date")
	return nil
}

func (c *cli) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Look at the configuration", RunE: needsSubcommand}
	cmd.AddCommand(&cobra.Command{
		Use: "check", Short: "Report every problem of the configuration and start nothing", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, _, err := c.load(config.Serve); err != nil {
				return err
			}
			fmt.Fprintln(c.stdout, "ok")
			return nil
		},
	})
	return cmd
}

func (c *cli) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			revision := ""
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						revision = s.Value
					}
				}
			}
			if asJSON {
				return c.printJSON(map[string]string{"version": version, "revision": revision, "go": runtime.Version()})
			}
			fmt.Fprintln(c.stdout, "hookonce", version, runtime.Version())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a JSON object")
	return cmd
}

// needsSubcommand answers a command that is only a heading.
func needsSubcommand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s has no command %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	_ = cmd.Help()
	return usageError{fmt.Errorf("%s needs a command", cmd.CommandPath())}
}

package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/inbox"
)

// The exit codes of every command.
const (
	exitDone     = 0
	exitFailed   = 1
	exitUsage    = 2 // wrong use or bad configuration
	exitNotFound = 3 // something asked for does not exist
)

// usageError is wrong use of the command line.
type usageError struct{ error }

// errNotFound says that what was asked for does not exist; inbox.ErrNotFound
// says the same of a key.
var errNotFound = errors.New("not found")

// exitCode is the one place where an error becomes an exit code.
func exitCode(err error) int {
	var usage usageError
	var problems config.Problems
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &usage), errors.As(err, &problems):
		return exitUsage
	case errors.Is(err, errNotFound), errors.Is(err, inbox.ErrNotFound):
		return exitNotFound
	}
	return exitFailed
}

// Main runs a program ("hookonce", or one of the roles as a program of its
// own) and returns its exit code. SIGINT and SIGTERM end it in good order; a
// second one ends it at once.
func Main(program string, args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)

	cli := &cli{program: program, stdout: stdout, stderr: stderr}
	root := cli.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	report(stderr, program, err)
	return exitCode(err)
}

// report prints an error: one line, or one for each problem of the
// configuration, as file:line so that editors can jump there.
func report(stderr io.Writer, program string, err error) {
	var problems config.Problems
	switch {
	case err == nil:
	case errors.As(err, &problems):
		fmt.Fprintln(stderr, err)
	default:
		fmt.Fprintf(stderr, "%s: %v\n", program, err)
	}
}

// cli is the command line of one program run.
type cli struct {
	program        string
	stdout, stderr io.Writer

	file      string
	set       []string
	logLevel  slog.LevelVar
	logFormat string
}

func (c *cli) root() *cobra.Command {
	var root *cobra.Command
	switch c.program {
	case "receiver":
		root = c.roleCommand("receiver", "Receive webhooks", config.ReceiverRole, runReceiver)
	case "consumer":
		root = c.roleCommand("consumer", "Apply the effects of events", config.ConsumerRole, runConsumer)
	default:
		root = &cobra.Command{Use: "hookonce", Short: "Every webhook takes effect once", Args: cobra.ArbitraryArgs, RunE: needsSubcommand}
		root.AddCommand(
			c.roleCommand("serve", "Run all roles in one process", config.Serve, runServe),
			c.roleCommand("receiver", "Run the receiver alone", config.ReceiverRole, runReceiver),
			c.roleCommand("consumer", "Run the consumer alone", config.ConsumerRole, runConsumer),
		)
		root.AddCommand(c.operatorCommands()...)
	}
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.PersistentFlags().StringVar(&c.file, "config", "", "configuration file (default ./hookonce.yaml if it exists)")
	root.PersistentFlags().StringArrayVar(&c.set, "set", nil, "path=value, wins over the file; may be repeated")
	root.PersistentFlags().TextVar(&c.logLevel, "log-level", &slog.LevelVar{}, "debug, info, warn or error")
	root.PersistentFlags().StringVar(&c.logFormat, "log-format", "text", "text or json")
	return root
}

// role runs one composition until ctx ends.
type role func(ctx context.Context, p *process) error

func (c *cli) roleCommand(use, short string, r config.Role, run role) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, err := c.load(r)
			if err != nil {
				return err
			}
			return runProcess(cmd.Context(), cfg, log, c.stdout, func(ctx context.Context, p *process) error {
				p.reload = func() (*config.Config, error) {
					return config.Load(config.Options{File: c.file, Set: c.set, Role: r})
				}
				return run(ctx, p)
			})
		},
	}
}

// load reads the configuration for a role and makes the logger.
func (c *cli) load(r config.Role) (*config.Config, *slog.Logger, error) {
	log, err := c.logger()
	if err != nil {
		return nil, nil, err
	}
	cfg, err := config.Load(config.Options{File: c.file, Set: c.set, Role: r})
	if err != nil {
		return nil, nil, err
	}
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}
	return cfg, log, nil
}

func (c *cli) logger() (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: &c.logLevel}
	switch c.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(c.stderr, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.stderr, opts)), nil
	}
	return nil, usageError{fmt.Errorf("--log-format %q: want text or json", c.logFormat)}
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, got %q", cmd.CommandPath(), args)}
	}
	return nil
}

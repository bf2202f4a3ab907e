package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/client"
)

// errNoControl says that the kind has no control program here.
var errNoControl = errors.New("has no control program")

// Control runs the server's own control program, rabbitmqctl, with arguments.
func (s *Server) Control(ctx context.Context, args ...string) error {
	return s.call(ctx, "control", func(b backend, ctx context.Context) error { return b.control(ctx, args) })
}

func (l *local) control(ctx context.Context, args []string) error {
	if l.ctl == nil {
		return errNoControl
	}
	cmd := l.ctl(ctx, args)
	cmd.Dir = l.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (b *inContainer) control(ctx context.Context, args []string) error {
	if b.recipe.ctl == "" {
		return errNoControl
	}
	run, err := b.client.ExecCreate(ctx, b.id, client.ExecCreateOptions{Cmd: append([]string{b.recipe.ctl}, args...)})
	if err != nil {
		return err
	}
	if _, err := b.client.ExecStart(ctx, run.ID, client.ExecStartOptions{Detach: true}); err != nil {
		return err
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		state, err := b.client.ExecInspect(ctx, run.ID, client.ExecInspectOptions{})
		switch {
		case err != nil:
			return err
		case !state.Running && state.ExitCode != 0:
			return fmt.Errorf("%s ended with %d", b.recipe.ctl, state.ExitCode)
		case !state.Running:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

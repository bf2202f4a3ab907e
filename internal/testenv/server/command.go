package server

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"
)

// grace is what a command gets between SIGTERM and SIGKILL.
const grace = 15 * time.Second

// Run runs a command and everything it starts as one group: when the context
// ends, the group gets SIGTERM and after a grace SIGKILL, and when the command
// ends, nothing of its group stays. It returns the exit code; 128 + the signal
// when a signal ended the command.
func Run(ctx context.Context, cmd *exec.Cmd) (int, error) {
	cmd.SysProcAttr = attributes(nil)
	p, err := spawn(cmd)
	if err != nil {
		return 1, err
	}
	defer killGroup(cmd.Process.Pid)
	select {
	case <-p.done:
	case <-ctx.Done():
		terminateGroup(p)
		limit := time.NewTimer(grace)
		defer limit.Stop()
		select {
		case <-p.done:
		case <-limit.C:
			p.kill()
		}
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}

// OpenAll opens servers of several kinds at the same time. On an error it
// returns none and leaves none behind.
func OpenAll(ctx context.Context, kinds ...Kind) ([]*Server, error) {
	servers, errs := make([]*Server, len(kinds)), make([]error, len(kinds))
	done := make(chan struct{})
	for i, kind := range kinds {
		go func() {
			servers[i], errs[i] = Open(ctx, kind)
			done <- struct{}{}
		}()
	}
	for range kinds {
		<-done
	}
	err := errors.Join(errs...)
	if err == nil {
		return servers, nil
	}
	for _, s := range servers {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	return nil, fmt.Errorf("start the servers of the tests: %w", err)
}

// Command gotest runs `go test -json` with its arguments and prints what a
// person wants to see of it: the output of tests that failed, one line per
// package, and at the end the counts of all tests, subtests included:
//
//	ok  	github.com/hookonce/hookonce/receiver	1.204s
//	318 passed, 0 failed
//
// The exit code is that of go test, and 1 when a test was skipped: a test that
// cannot run must fail and say what it needs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func main() {
	// The signal reaches go test too, as a member of the same group; here it
	// only must not cut off the counts.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (int, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("start go test: %w", err)
	}
	s := newSummary(os.Stdout)
	readErr := s.read(out)
	err = cmd.Wait()
	s.close()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 1, err
	}
	if readErr != nil {
		return 1, fmt.Errorf("read go test's output: %w", readErr)
	}
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		code = 1 // a signal ended it
	}
	if code == 0 && s.skipped > 0 {
		return 1, nil
	}
	return code, nil
}

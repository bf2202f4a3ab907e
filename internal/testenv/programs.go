package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// RunPrograms is [Run] for tests of the real programs: it sets bin to the
// folder they are in. That is the one that `make test` built them into
// (HOOKONCE_TEST_PROGRAMS), else one of this process's own, made from the
// package pattern cmd and removed at the end.
func RunPrograms(m *testing.M, bin *string, cmd string, options ...goleak.Option) int {
	if *bin = os.Getenv("HOOKONCE_TEST_PROGRAMS"); *bin != "" {
		return Run(m, options...)
	}
	dir, err := os.MkdirTemp("", "hookonce-programs-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	*bin = dir
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator), cmd)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "testenv: building the programs:", err)
		return 1
	}
	return Run(m, options...)
}

//go:build !linux

package redis_test

import (
	"os/exec"
	"testing"
)

func endWithUs(*exec.Cmd) {}

func pause(t *testing.T, _ *node) (resume func()) {
	t.Helper()
	t.Fatal("a process is made to stand still on Linux only: run this test there")
	return nil
}

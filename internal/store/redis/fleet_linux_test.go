package redis_test

import (
	"os/exec"
	"syscall"
	"testing"
)

// endWithUs lets no server outlive the tests, whatever ends them.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// pause lets a process stand still, its connections open; it goes on at the
// latest when the test ends.
func pause(t *testing.T, n *node) (resume func()) {
	t.Helper()
	must(t, n.cmd.Process.Signal(syscall.SIGSTOP))
	resume = func() {
		if n.cmd != nil {
			_ = n.cmd.Process.Signal(syscall.SIGCONT)
		}
	}
	t.Cleanup(resume)
	return resume
}

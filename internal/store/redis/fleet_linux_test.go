package redis_test

import (
	"os/exec"
	"syscall"
)

// endWithUs lets no server outlive the tests, whatever ends them.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

//go:build !linux

package server

import (
	"os"
	"syscall"
)

// localSupported is false: without the parent-death signal a killed test run
// would leave its servers behind. Use the environment or a container engine.
const localSupported = false

func attributes(*credential) *syscall.SysProcAttr { return nil }

func asUser(*credential) *syscall.SysProcAttr { return nil }

func killGroup(int) {}

func terminateGroup(p *process) { _ = p.cmd.Process.Signal(os.Interrupt) }

func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p != nil
}

func forget(string) {}

package server

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// localSupported says that private local processes can be had on this system.
const localSupported = true

// attributes makes the child die with this process, as another user if cred is
// not nil.
func attributes(cred *credential) *syscall.SysProcAttr {
	attr := asUser(cred)
	attr.Setpgid, attr.Pdeathsig = true, syscall.SIGKILL
	return attr
}

// asUser runs a command that is waited for as another user.
func asUser(cred *credential) *syscall.SysProcAttr {
	if cred == nil {
		return &syscall.SysProcAttr{}
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: cred.uid, Gid: cred.gid}}
}

// killGroup ends all processes that the child started.
func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

func terminateGroup(p *process) { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM) }

func alive(pid int) bool { return syscall.Kill(pid, 0) != syscall.ESRCH }

// forget removes the System V segment that a killed Postgres leaves in the
// kernel; its number is the second on the seventh line of postmaster.pid.
func forget(dir string) {
	pidFile, err := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
	if err != nil {
		return
	}
	lines := bytes.Split(pidFile, []byte("\n"))
	if len(lines) < 7 {
		return
	}
	fields := bytes.Fields(lines[6])
	if len(fields) != 2 {
		return
	}
	id, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return
	}
	const ipcRemove = 0
	_, _, _ = syscall.Syscall(syscall.SYS_SHMCTL, uintptr(id), ipcRemove, 0)
}

//go:build !linux

package redis_test

import "os/exec"

func endWithUs(*exec.Cmd) {}

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// dirPrefix is followed by the pid of the owner: what a killed test run left
// behind is found and removed by the next one.
const dirPrefix = "hookonce-testenv-"

var sweepOnce sync.Once

// tempDir makes a folder that other users may traverse: Postgres does not run
// as root and needs a way to its data.
func tempDir(kind Kind) (string, error) {
	base, err := traversable()
	if err != nil {
		return "", err
	}
	sweepOnce.Do(func() { sweep(base) })
	dir, err := os.MkdirTemp(base, fmt.Sprintf("%s%d-%s-", dirPrefix, os.Getpid(), kind))
	if err != nil {
		return "", fmt.Errorf("make the data folder of %s: %w", kind, err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // another user must get through
		return "", fmt.Errorf("open the data folder of %s: %w", kind, err)
	}
	return dir, nil
}

// traversable returns the first temporary folder whose parents all let other
// users through.
func traversable() (string, error) {
	for _, base := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		abs, err := filepath.Abs(base)
		if err == nil && open(abs) {
			return abs, nil
		}
	}
	return "", errors.New("no temporary folder that other users may traverse: set TMPDIR to one")
}

func open(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// sweep removes folders whose owner is gone.
func sweep(base string) {
	found, _ := filepath.Glob(filepath.Join(base, dirPrefix+"*"))
	for _, dir := range found {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		n, err := strconv.Atoi(pid)
		if err != nil || alive(n) {
			continue
		}
		forget(dir)
		_ = os.RemoveAll(dir)
	}
}

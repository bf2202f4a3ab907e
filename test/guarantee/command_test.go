package guarantee

import (
	"errors"
	"os/exec"
	"path/filepath"
)

// command runs an operator command and returns its output and exit code.
func command(args ...string) (string, int) {
	out, err := exec.Command(filepath.Join(bin, "hookonce"), args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return string(out), 0
	case errors.As(err, &exit):
		return string(out), exit.ExitCode()
	}
	return err.Error(), -1
}

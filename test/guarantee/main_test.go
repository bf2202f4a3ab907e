package guarantee

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hookonce/hookonce/internal/testenv"
)

// bin is the folder of the programs under test, built once for all tests.
var bin string

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

// runTests uses the programs that `make test` built, or builds its own.
func runTests(m *testing.M) int {
	if bin = os.Getenv("HOOKONCE_TEST_PROGRAMS"); bin != "" {
		return testenv.Run(m)
	}
	dir, err := os.MkdirTemp("", "hookonce-guarantee-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "guarantee:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator), "../../cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "guarantee: building the programs:", err)
		return 1
	}
	return testenv.Run(m)
}

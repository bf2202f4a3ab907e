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

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "hookonce-guarantee-")
	if err == nil {
		bin = dir
		build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "../../cmd/...")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, "guarantee: building the programs:", err)
	} else {
		code = testenv.Run(m)
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

package testenv

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce/internal/testenv/server"
)

// Run is the TestMain of packages that use servers or start goroutines: it runs
// the tests, ends the shared servers and then looks for goroutines that the
// tests left behind, which is a failure. It returns the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Run(m)) }
func Run(m *testing.M, ignore ...goleak.Option) int {
	code := m.Run()
	for _, h := range []*shared{&postgres, &rabbitmq} {
		if err := h.close(); err != nil {
			fmt.Fprintf(os.Stderr, "testenv: end %s: %v\n", h.kind, err)
			code = max(code, 1)
		}
	}
	if err := server.CloseEngine(); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: leave the container engine: %v\n", err)
	}
	if code != 0 {
		return code // a failed test may well have left goroutines
	}
	if err := goleak.Find(ignore...); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: goroutines left behind: %v\n", err)
		return 1
	}
	return 0
}

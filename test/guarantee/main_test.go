package guarantee

import (
	"os"
	"testing"

	"github.com/hookonce/hookonce/internal/testenv"
)

// bin is the folder of the programs under test, built once for all tests.
var bin string

func TestMain(m *testing.M) { os.Exit(testenv.RunPrograms(m, &bin, "../../cmd/...")) }

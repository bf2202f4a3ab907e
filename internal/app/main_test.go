package app

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// call runs a command line in an empty folder.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Main("hookonce", args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestExitCodesTellWrongUseFromFailure(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("bad.yaml", []byte("stor: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]struct {
		code int
		text string // in stderr
	}{
		"":                                   {2, "needs a command"},
		"frob":                               {2, `no command "frob"`},
		"dead":                               {2, "needs a command"},
		"dead frob":                          {2, `no command "frob"`},
		"serve extra":                        {2, "takes no arguments"},
		"serve --nope":                       {2, "--nope"},
		"serve --config bad.yaml":            {2, "bad.yaml:1: stor"},
		"serve --config missing.yaml":        {2, "missing.yaml"},
		"serve --set store.kind=redise":      {2, "--set"},
		"serve --log-format xml":             {2, "text or json"},
		"serve --log-level loud":             {2, "loud"},
		"dead replay":                        {2, "--all"},
		"dead discard":                       {2, "--all"},
		"events show":                        {2, "full key"},
		"events show nokey":                  {2, "full key"},
		"events list":                        {3, "no inbox"},
		"events list --admin http://[::1]:9": {1, "--admin"},
		"config check":                       {0, ""},
		"version":                            {0, ""},
		"migrate up":                         {0, ""},
	} {
		code, _, stderr := call(t, strings.Fields(line)...)
		if code != want.code || !strings.Contains(stderr, want.text) {
			t.Errorf("hookonce %s: exit %d, want %d and %q in:\n%s", line, code, want.code, want.text, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(".", "hookonce-data")); err == nil {
		t.Error("a command that opens nothing made the data folder")
	}
}

func TestConfigProblemsStandOnLinesOfTheirOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("hookonce.yaml", []byte("stor: {}\nsources: { A: { verify: none } }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stdout, stderr := call(t, "serve")
	for _, line := range strings.Split(strings.TrimSpace(stderr), "\n") {
		if !strings.HasPrefix(line, "hookonce.yaml:") {
			t.Errorf("line %q", line)
		}
	}
	if stdout != "" {
		t.Errorf("stdout: %q", stdout)
	}
}

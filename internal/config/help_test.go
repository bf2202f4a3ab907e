package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
)

// env is a Getenv over fixed variables.
func env(pairs ...string) func(string) (string, bool) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) (string, bool) {
		v, ok := m[name]
		return v, ok
	}
}

// write puts a configuration file into a new folder, which becomes the working
// directory, and returns its name.
func write(t *testing.T, text string) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile("h.yaml", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "h.yaml"
}

func load(t *testing.T, text string, opts config.Options) (*config.Config, error) {
	t.Helper()
	opts.File = write(t, text)
	if opts.Getenv == nil {
		opts.Getenv = env()
	}
	return config.Load(opts)
}

func mustLoad(t *testing.T, text string, opts config.Options) *config.Config {
	t.Helper()
	cfg, err := load(t, text, opts)
	if err != nil {
		t.Fatalf("unexpected problems:\n%v", err)
	}
	return cfg
}

// problemLines are the lines of an error that must be Problems.
func problemLines(t *testing.T, err error) []string {
	t.Helper()
	var problems config.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("got %T (%v), want config.Problems", err, err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(problems) {
		t.Fatalf("%d lines for %d problems:\n%v", len(lines), len(problems), err)
	}
	return lines
}

// wantProblems compares the problems with the beginnings (up to " … ") and, behind it,
// a part of each expected line, in order.
func wantProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no problem found, want:\n%s", strings.Join(want, "\n"))
	}
	got := problemLines(t, err)
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		start, part, _ := strings.Cut(want[i], " … ")
		ok = strings.HasPrefix(got[i], start) && strings.Contains(got[i], part)
	}
	if !ok {
		t.Fatalf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func testFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

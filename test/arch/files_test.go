package arch_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// topLevel is everything the repository may have in its root beside Go files
// and dotfiles: a newcomer finds the parts by their names.
var topLevel = []string{
	"LICENSE", "Makefile", "README.md", "go.mod", "go.sum",
	"cmd", "receiver", "publisher", "consumer", "internal", "deploy", "test",
}

// made is what builds and first runs leave in the root, ignored by git.
var made = regexp.MustCompile(`^(bin|hookonce-data|coverage.*)$|\.test$`)

func TestTopLevelIsFixed(t *testing.T) {
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".go") || made.MatchString(name) {
			continue
		}
		if !slices.Contains(topLevel, name) {
			t.Errorf("%s is new in the root: find it a room in %v", name, topLevel[5:])
		}
	}
}

func TestEveryPackageHasOneDoc(t *testing.T) {
	for _, p := range all(t) {
		files := p.GoFiles
		if len(files) == 0 { // a package of tests
			files = slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		}
		var with []string
		for _, name := range files {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				with = append(with, name)
			}
		}
		if len(with) != 1 {
			t.Errorf("%s has its package doc in %v: it wants one, in one file", p.name(), with)
		}
	}
}

const longest = 500

func TestFilesStayShort(t *testing.T) {
	eachFile(t, func(path string, content []byte) {
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return
		}
		if lines := bytes.Count(content, []byte("\n")); lines > longest {
			t.Errorf("%s has %d lines, more than %d: a file holds one concept", path, lines, longest)
		}
	})
}

// The words are put together, so that this file may say them.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)

func TestNothingIsLeftForLater(t *testing.T) {
	eachFile(t, func(path string, content []byte) {
		for i, line := range bytes.Split(content, []byte("\n")) {
			if unfinished.Match(line) {
				t.Errorf("%s:%d: %s: finish it or write an issue", path, i+1, bytes.TrimSpace(line))
			}
		}
	})
}

// forbiddenCall says why a test may not make the call; "" when it may.
func forbiddenCall(sel *ast.SelectorExpr) string {
	of, _ := sel.X.(*ast.Ident)
	switch name := sel.Sel.Name; {
	case name == "Sleep" && of != nil && of.Name == "time":
		return "time.Sleep: wait for what is awaited, by a channel, a ticker with a deadline or testing/synctest"
	case (name == "Skip" || name == "Skipf" || name == "SkipNow") && of != nil && len(of.Name) <= 2:
		return of.Name + "." + name + ": a test that cannot run fails and says what it needs"
	}
	return ""
}

// inBubble: inside synctest.Test a sleep moves the bubble's own clock and takes
// no time.
func inBubble(sel *ast.SelectorExpr) bool {
	of, ok := sel.X.(*ast.Ident)
	return ok && of.Name == "synctest" && sel.Sel.Name == "Test"
}

func TestTestsNeitherSleepNorSkip(t *testing.T) {
	eachFile(t, func(path string, content []byte) {
		if !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "internal/testenv/") {
			return
		}
		if !strings.HasSuffix(path, ".go") {
			return
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, path, content, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if why := forbiddenCall(sel); why != "" {
				t.Errorf("%s calls %s", set.Position(call.Pos()), why)
			}
			return !inBubble(sel)
		})
	})
}

// eachFile calls f with every text file of the repository that is not made by
// a build, its path relative to the root.
func eachFile(t *testing.T, f func(path string, content []byte)) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		hidden := rel != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci"
		if d.IsDir() {
			if hidden || d.Name() == "testdata" || (filepath.Dir(rel) == "." && made.MatchString(rel)) {
				return filepath.SkipDir
			}
			return nil
		}
		if rel == "go.sum" || made.MatchString(rel) {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.ContainsRune(content[:min(len(content), 1024)], 0) {
			n++
			f(filepath.ToSlash(rel), content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n < 20 {
		t.Fatalf("only %d files were looked at", n)
	}
}

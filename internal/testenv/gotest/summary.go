package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build-output
	Test       string
	Output     string
}

// summary prints events as they come and counts them.
type summary struct {
	w       io.Writer
	output  map[string][]string // what a running test wrote, by package and name
	failing map[string]bool     // packages with a failed test

	passed, failed, skipped int
}

func newSummary(w io.Writer) *summary {
	return &summary{w: w, output: map[string][]string{}, failing: map[string]bool{}}
}

func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		s.print(line) // go itself, before it speaks JSON
		return
	}
	switch {
	case e.Action == "build-output":
		s.print(e.Output)
	case e.Test == "":
		s.packageEvent(e)
	default:
		s.testEvent(e)
	}
}

func (s *summary) packageEvent(e event) {
	switch e.Action {
	case "output":
		if e.Output != "PASS\n" && !strings.HasSuffix(e.Output, "[no test files]\n") {
			s.print(e.Output)
		}
	case "fail":
		if !s.failing[e.Package] { // it did not build, or broke outside of its tests
			s.failed++
		}
	}
}

func (s *summary) testEvent(e event) {
	name := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		s.output[name] = append(s.output[name], e.Output)
		return
	case "pass":
		s.passed++
	case "skip":
		s.skipped++
		s.print("skipped: " + name + ": a test that cannot run must fail\n")
	case "fail":
		s.failed++
		s.failing[e.Package] = true
		for _, out := range s.output[name] {
			s.print(out)
		}
	default:
		return
	}
	delete(s.output, name)
}

// close prints what tests wrote that never ended, and the counts.
func (s *summary) close() {
	for _, out := range s.output {
		s.print(strings.Join(out, ""))
	}
	if s.skipped > 0 {
		s.print(fmt.Sprintf("%d skipped\n", s.skipped))
	}
	s.print(fmt.Sprintf("%d passed, %d failed\n", s.passed, s.failed))
}

func (s *summary) print(text string) { _, _ = io.WriteString(s.w, text) }

package app

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/receiver/provider"
)

var update = flag.Bool("update", false, "write the provider table of the README anew")

const (
	tableBegin = "<!-- providers: made by go test ./internal/app -run TestReadme -update -->\n"
	tableEnd   = "<!-- end of providers -->\n"
)

// providerTable is the table of the README.
func providerTable() string {
	var b strings.Builder
	b.WriteString("| `provider:` | sender | key, the first that is present | | confidence |\n|---|---|---|---|---|\n")
	for _, p := range provider.All() {
		title := p.Title
		if p.Docs != "" {
			title = "[" + p.Title + "](" + p.Docs + ")"
		}
		keys := make([]string, len(p.Keys))
		for i, key := range p.Keys {
			keys[i] = "`" + key + "`"
		}
		var notes []string
		if p.Batches {
			notes = append(notes, "batches are split")
		}
		if p.Probe != nil || p.Handshake != nil {
			notes = append(notes, "handshake")
		}
		if p.NoDedup {
			notes = append(notes, "no key tells events apart: every delivery is one")
		}
		if p.Guard.Recipe != "" {
			notes = append(notes, "a signature counts once")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", p.Name, title, strings.Join(keys, "<br>"), strings.Join(notes, ", "), p.Confidence)
	}
	return b.String()
}

// TestReadmeListsTheProviders: the table is what the presets say.
func TestReadmeListsTheProviders(t *testing.T) {
	name := filepath.Join("..", "..", "README.md")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegin)
	table, after, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		t.Fatal("README.md has lost the marks of its provider table")
	}
	if *update {
		if err := os.WriteFile(name, []byte(before+tableBegin+providerTable()+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != providerTable() {
		t.Error("README.md's provider table is not what the presets say: go test ./internal/app -run TestReadme -update")
	}
}

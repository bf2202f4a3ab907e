package app

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/receiver/provider"
)

// presetLine is a provider as `providers list` shows it.
type presetLine struct {
	Name       string `json:"name"`
	Title      string `json:"title"`
	Confidence string `json:"confidence"`
	Key        string `json:"key"`
	Dedup      string `json:"dedup"`
	Docs       string `json:"docs"`
}

// presetPage is a provider as `providers show` shows it.
type presetPage struct {
	presetLine
	Verifies  string   `json:"verifies"`
	Schemes   []string `json:"schemes,omitempty"`
	Takes     []string `json:"takes,omitempty"`
	Tolerance string   `json:"tolerance"`
	Secrets   string   `json:"secrets"`
	Type      string   `json:"type"`
	Created   string   `json:"created,omitempty"`
	Entity    string   `json:"entity,omitempty"`
	Version   string   `json:"version,omitempty"`
	Split     bool     `json:"split"`
	Handshake bool     `json:"handshake"`
	Status    int      `json:"status"`
	Body      string   `json:"body"`
	Retention string   `json:"retention"`
	OnNoKey   string   `json:"on_no_key"`
	Trap      string   `json:"trap"`
}

func lineOf(p provider.Preset) presetLine {
	l := presetLine{p.Name, p.Title, p.Confidence, strings.Join(p.Keys, ", "), "key", p.Docs}
	if p.NoDedup {
		l.Dedup = "none"
	}
	return l
}

func pageOf(p provider.Preset) presetPage {
	page := presetPage{
		presetLine: lineOf(p), Verifies: p.Verifies, Schemes: p.Schemes, Takes: p.Takes, Tolerance: provider.DefaultTolerance.String(), Secrets: p.Secrets, Type: strings.Join(p.Types, ", "),
		Created: p.Created, Entity: p.Entity, Version: p.Version,
		Split: p.Batches, Handshake: p.Probe != nil || p.Handshake != nil,
		Status: p.Status, Body: p.Body, Retention: "45d", OnNoKey: "reject", Trap: p.Trap,
	}
	if p.Tolerance != 0 {
		page.Tolerance = p.Tolerance.String()
	}
	if page.Status == 0 {
		page.Status = 200
	}
	if p.Retention != 0 {
		page.Retention = fmt.Sprintf("%dd", p.Retention/(24*60*60*1e9))
	}
	if p.ParkNoKey {
		page.OnNoKey = "park"
	}
	return page
}

func (c *cli) providersCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "providers", Short: "Look at what is known of the senders of webhooks", RunE: needsSubcommand}
	cmd.AddCommand(c.providersList(), c.providersShow())
	return cmd
}

func (c *cli) providersList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the values of provider:, with their keys", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			var lines []presetLine
			for _, p := range provider.All() {
				lines = append(lines, lineOf(p))
			}
			return rows(printer{c.stdout, asJSON}, lines, "name confidence dedup title key", func(l presetLine) []any {
				return []any{l.Name, l.Confidence, l.Dedup, l.Title, l.Key}
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return cmd
}

func (c *cli) providersShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show what a provider signs, what its key is, and what to put where",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s takes one name; see %s list", cmd.CommandPath(), cmd.Parent().CommandPath())}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := preset(args[0])
			if err != nil {
				return err
			}
			page := pageOf(p)
			if asJSON {
				return c.printJSON(page)
			}
			return c.printPage(page)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a JSON object")
	return cmd
}

func preset(name string) (provider.Preset, error) {
	p, ok := provider.Lookup(name)
	if !ok {
		return p, fmt.Errorf("%w: provider %q; see hookonce providers list", errNotFound, name)
	}
	return p, nil
}

func (c *cli) printPage(p presetPage) error {
	entry, err := sourceEntry(p.Name)
	if err != nil {
		return err
	}
	answer := fmt.Sprint(p.Status)
	if p.Body != "" {
		answer += " " + p.Body
	}
	yes := map[bool]string{true: "yes", false: "no"}
	for _, line := range [][2]string{
		{"name", p.Name},
		{"title", p.Title},
		{"confidence", p.Confidence + confidenceMeans[p.Confidence]},
		{"docs", p.Docs},
		{"verifies", p.Verifies},
		{"schemes", strings.Join(p.Schemes, ", ")},
		{"takes", verifyParts(p.Takes)},
		{"tolerance", p.Tolerance + ", where a time is signed"},
		{"secrets", p.Secrets},
		{"key", p.Key},
		{"dedup", p.Dedup},
		{"on_no_key", p.OnNoKey},
		{"type", p.Type},
		{"created", p.Created},
		{"entity", p.Entity},
		{"version", p.Version},
		{"batches", yes[p.Split]},
		{"handshake", yes[p.Handshake]},
		{"answer", answer},
		{"retention", p.Retention},
		{"beware", p.Trap},
	} {
		if line[1] != "" {
			fmt.Fprintf(c.stdout, "%-11s %s\n", line[0], line[1])
		}
	}
	fmt.Fprintf(c.stdout, "\na source for trying (send --provider %s), with secrets that everybody knows:\n\nsources:\n%s", p.Name, entry)
	return nil
}

// verifyParts are the parts of verify: that a preset reads.
func verifyParts(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "verify." + strings.Join(names, ", verify.")
}

var confidenceMeans = map[string]string{
	"high":   " (official source or code read, vectors match)",
	"medium": " (official text read, some of it not verified)",
	"low":    " (mostly second-hand: try it with real deliveries first)",
}

// sourceEntry is a source of the configuration, indented by two, that accepts
// what send makes.
func sourceEntry(name string) (string, error) {
	p, err := preset(name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  %s:\n    provider: %s\n", p.Name, p.Name)
	for line := range strings.SplitSeq(p.Sample.Source, "\n") {
		fmt.Fprintf(&b, "    %s\n", line)
	}
	return b.String(), nil
}

package app

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
)

func (c *cli) printJSON(v any) error { return json.NewEncoder(c.stdout).Encode(v) }

// rows prints items, one JSON object or one line of columns each.
func rows[T any](p printer, items []T, head string, columns func(T) []any) error {
	if p.asJSON {
		enc := json.NewEncoder(p.w)
		enc.SetEscapeHTML(false)
		for _, item := range items {
			if err := enc.Encode(item); err != nil {
				return err
			}
		}
		return nil
	}
	if len(items) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(p.w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(w, strings.ToUpper(strings.ReplaceAll(head, " ", "\t")))
	for _, item := range items {
		cells := columns(item)
		texts := make([]string, len(cells))
		for i, cell := range cells {
			texts[i] = oneLine(fmt.Sprint(cell))
		}
		fmt.Fprintln(w, strings.Join(texts, "\t"))
	}
	return w.Flush()
}

// oneLine makes a text fit for a column and safe for a terminal.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	if len(s) > 100 {
		s = strings.ToValidUTF8(s[:97], "") + "..."
	}
	return s
}

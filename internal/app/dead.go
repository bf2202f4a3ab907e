package app

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/admin"
	"github.com/hookonce/hookonce/internal/inbox"
)

func (c *cli) deadCommand() *cobra.Command {
	dead := &cobra.Command{Use: "dead", Short: "Look at, replay and discard dead letters", RunE: needsSubcommand}
	dead.AddCommand(c.deadList(), c.deadGroups(), c.deadShow(),
		c.deadChange("replay", "Send dead letters to their group again; what is done is never done again",
			func(ctx context.Context, api *admin.Client, ch admin.Change, each func(admin.Line)) (admin.Totals, error) {
				return api.Replay(ctx, ch, each)
			}),
		c.deadChange("discard", "Give dead letters up for good",
			func(ctx context.Context, api *admin.Client, ch admin.Change, each func(admin.Line)) (admin.Totals, error) {
				return api.Discard(ctx, ch, each)
			}))
	return dead
}

func (c *cli) deadList() *cobra.Command {
	o := &operator{cli: c}
	var s admin.Selection
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List dead letters, dead first in front", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return o.with(ctx, func(api *admin.Client) error {
				items, err := pages(limit, func(p admin.Page) (admin.List[admin.Dead], error) { return api.Dead(ctx, s, p) })
				if err != nil {
					return answered(err)
				}
				return rows(o.printer(), items, "key type group dead_at attempts reason step last_error", func(d admin.Dead) []any {
					return []any{escape(d.Key), d.Type, d.Group, stamp(d.DeadAt), d.Attempts, d.Reason, d.Step, d.LastError}
				})
			})
		},
	}
	o.flags(cmd)
	deadFilters(cmd, &s, &limit, 100)
	return cmd
}

func (c *cli) deadGroups() *cobra.Command {
	o := &operator{cli: c}
	var s admin.Selection
	var limit int
	cmd := &cobra.Command{
		Use: "groups", Short: "Count dead letters that died alike", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.with(cmd.Context(), func(api *admin.Client) error {
				items, err := api.DeadGroups(cmd.Context(), s)
				if err != nil {
					return answered(err)
				}
				if limit > 0 && len(items) > limit {
					items = items[:limit]
				}
				return rows(o.printer(), items, "count group type reason error first last", func(g admin.DeadGroup) []any {
					return []any{g.Count, g.Group, g.Type, g.Reason, g.Error, stamp(g.First), stamp(g.Last)}
				})
			})
		},
	}
	o.flags(cmd)
	deadFilters(cmd, &s, &limit, 100)
	return cmd
}

func (c *cli) deadShow() *cobra.Command {
	o := &operator{cli: c}
	var group string
	cmd := &cobra.Command{
		Use: "show KEY", Short: "Show all that is known of one dead letter, its content included", Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withEvent(cmd.Context(), args[0], func(key hookonce.Key, details []admin.Detail) error {
				details = slices.DeleteFunc(details, func(d admin.Detail) bool {
					return d.State != string(inbox.Dead) || group != "" && d.Group != group
				})
				if len(details) == 0 {
					return fmt.Errorf("%s is no dead letter: %w", key.Escaped(), errNotFound)
				}
				if o.asJSON {
					return rows(o.printer(), details, "", nil)
				}
				for _, d := range details {
					o.showEvent(d)
					o.showContent(d)
				}
				return nil
			})
		},
	}
	o.flags(cmd)
	cmd.Flags().StringVar(&group, "group", "", "of one consumer group")
	return cmd
}

// showContent prints what the provider sent.
func (o *operator) showContent(d admin.Detail) {
	if d.Content == nil {
		return
	}
	for _, name := range sortedKeys(d.Headers) {
		fmt.Fprintf(o.stdout, "%s: %s\n", oneLine(name), oneLine(d.Headers[name]))
	}
	body := d.Body
	if d.BodyBase64 != nil {
		body = fmt.Sprintf("%d bytes that are no text; --json has them", len(d.BodyBase64))
	}
	fmt.Fprintf(o.stdout, "\n%s\n\n", plain(body))
}

// plain leaves a text's lines and takes out what a terminal would obey.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

func deadFilters(cmd *cobra.Command, s *admin.Selection, limit *int, limitDefault int) {
	filters(cmd, s, limit, limitDefault)
	cmd.Flags().StringVar(&s.Reason, "reason", "", "dead for this reason: failed, permanent, unknown, expired, crashed, invalid, unrouted")
}

func (c *cli) deadChange(use, short string, do replayOrDiscard) *cobra.Command {
	o := &operator{cli: c}
	var ch admin.Change
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ch.Force || ch.Unknown != "" {
				// A decision's reason is the operator's own.
				ch.Comment, ch.Selection.Reason = ch.Selection.Reason, ""
			}
			if ch.Selection.Empty() && !ch.All {
				return usageError{fmt.Errorf("dead %s needs a filter, or --all for every dead letter", use)}
			}
			return o.with(cmd.Context(), func(api *admin.Client) error { return o.change(cmd.Context(), api, ch, do) })
		},
	}
	o.flags(cmd)
	deadFilters(cmd, &ch.Selection, &ch.Limit, 0)
	cmd.Flags().BoolVar(&ch.All, "all", false, "every dead letter")
	cmd.Flags().BoolVar(&ch.DryRun, "dry-run", false, "print the plan and change nothing")
	cmd.Flags().Float64Var(&ch.Rate, "rate", 0, "how many a second at most; 0: as fast as it goes")
	if use == "discard" {
		cmd.Flags().StringVar(&ch.Comment, "comment", "", "why, for the event's timeline")
		return cmd
	}
	f := cmd.Flags()
	f.Lookup("reason").Usage += "; with --force and --unknown: why you decide so, in your words"
	f.StringVar(&ch.Unknown, "unknown", "", "what became of effects that may have happened: done (go on behind them), rerun (try again, same downstream key); needs --reason")
	f.BoolVar(&ch.Force, "force", false, "run steps again that are done, as a new run with new downstream keys; needs --reason and --step or --all-steps")
	f.StringArrayVar(&ch.Steps, "step", nil, "with --force: the step to run again; may be repeated")
	f.BoolVar(&ch.AllSteps, "all-steps", false, "with --force: run every step again")
	return cmd
}

// change prints a line for each letter as it is dealt with, then the totals.
func (o *operator) change(ctx context.Context, api *admin.Client, ch admin.Change, do replayOrDiscard) error {
	out := o.printer()
	progress := newProgress(o.stderr)
	if progress.on {
		progress.total = expected(ctx, api, ch)
	}
	totals, err := do(ctx, api, ch, func(l admin.Line) {
		progress.step()
		if out.asJSON {
			_ = rows(out, []admin.Line{l}, "", nil)
			return
		}
		fmt.Fprintf(o.stdout, "%s  %s  %s\n", escape(l.Key), l.Group, oneLine(l.Result))
	})
	progress.end()
	if err != nil {
		return answered(err)
	}
	if out.asJSON {
		if err := o.printJSON(totals); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(o.stdout, "total %d: %d replayed, %d discarded, %d skipped, %d failed, %d planned\n",
			totals.Total, totals.Replayed, totals.Discarded, totals.Skipped, totals.Failed, totals.Planned)
	}
	switch {
	case totals.Found != nil && !*totals.Found:
		return fmt.Errorf("%s: %w", ch.Key, errNotFound)
	case totals.Stopped != "":
		return fmt.Errorf("stopped early: %s; run the command again to go on", totals.Stopped)
	case totals.Failed > 0:
		return fmt.Errorf("%d of %d failed", totals.Failed, totals.Total)
	}
	return nil
}

// expected is how many letters a change will come to; 0 when that is unknown.
func expected(ctx context.Context, api *admin.Client, ch admin.Change) int {
	groups, err := api.DeadGroups(ctx, ch.Selection)
	if err != nil {
		return 0 // the change itself will say why
	}
	n := 0
	for _, g := range groups {
		n += int(g.Count)
	}
	if ch.Limit > 0 {
		n = min(n, ch.Limit)
	}
	return n
}

// progress shows on a terminal how far a long change is.
type progress struct {
	w     interface{ Write([]byte) (int, error) }
	on    bool
	n     int
	total int // 0: unknown
	began time.Time
	shown time.Time
}

func newProgress(w interface{ Write([]byte) (int, error) }) *progress {
	p := &progress{w: w, began: time.Now()}
	if f, ok := w.(*os.File); ok {
		if fi, err := f.Stat(); err == nil {
			p.on = fi.Mode()&os.ModeCharDevice != 0
		}
	}
	return p
}

func (p *progress) step() {
	p.n++
	if p.on && time.Since(p.shown) > 500*time.Millisecond {
		p.shown = time.Now()
		fmt.Fprintf(p.w, "\r\033[K%s", p.text(time.Since(p.began)))
	}
}

// text is the line of the moment.
func (p *progress) text(took time.Duration) string {
	rate := float64(p.n) / took.Seconds()
	if p.total < p.n || rate <= 0 {
		return fmt.Sprintf("%d done, %.0f/s", p.n, rate)
	}
	left := time.Duration(float64(p.total-p.n) / rate * float64(time.Second))
	return fmt.Sprintf("%d of %d done, %.0f/s, %s left", p.n, p.total, rate, left.Round(time.Second))
}

func (p *progress) end() {
	if p.on && !p.shown.IsZero() {
		fmt.Fprint(p.w, "\r\033[K")
	}
}

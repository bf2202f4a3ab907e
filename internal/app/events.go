package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/admin"
)

// filters binds the flags that select events or dead letters.
func filters(cmd *cobra.Command, s *admin.Selection, limit *int, limitDefault int) {
	f := cmd.Flags()
	f.StringVar(&s.Source, "source", "", "events of one source")
	f.StringVar(&s.Type, "type", "", "of a type, or a pattern: order.*")
	f.StringVar(&s.Group, "group", "", "of one consumer group; - is what no group wanted")
	f.Func("key", "one full `key`: <source>/<key>, escaped as it is printed", func(text string) error {
		key, err := hookonce.ParseKey(text)
		s.Key = admin.FullKey(key)
		return err
	})
	f.StringVar(&s.Error, "error", "", "with this text in the error")
	f.StringVar(&s.Since, "since", "", "from a time on, or as long ago as 90m, 36h, 7d")
	f.StringVar(&s.Until, "until", "", "up to a time")
	f.IntVar(limit, "limit", limitDefault, "how many at most; 0: all")
}

func (c *cli) eventsCommand() *cobra.Command {
	events := &cobra.Command{Use: "events", Short: "Look at events", RunE: needsSubcommand}
	events.AddCommand(c.eventsList(), c.eventsShow())
	return events
}

func (c *cli) eventsList() *cobra.Command {
	o := &operator{cli: c}
	var s admin.Selection
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List events, one line for each group, received last in front", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			return o.with(ctx, func(api *admin.Client) error {
				items, err := pages(limit, func(p admin.Page) (admin.List[admin.Event], error) { return api.Events(ctx, s, p) })
				if err != nil {
					return answered(err)
				}
				return rows(o.printer(), items, "key type group state received attempts last_error", func(e admin.Event) []any {
					return []any{escape(e.Key), e.Type, e.Group, e.State, stamp(e.ReceivedAt), e.Attempts, e.LastError}
				})
			})
		},
	}
	o.flags(cmd)
	filters(cmd, &s, &limit, 100)
	cmd.Flags().StringVar(&s.State, "state", "", "in this state: accepted, published, running, retrying, done, dead, discarded, purged")
	return cmd
}

// withEvent gives fn what is known of the event that the command line names.
func (o *operator) withEvent(ctx context.Context, arg string, fn func(key hookonce.Key, details []admin.Detail) error) error {
	key, err := hookonce.ParseKey(arg)
	if err != nil {
		return usageError{err}
	}
	return o.with(ctx, func(api *admin.Client) error {
		details, err := api.Event(ctx, key)
		if err != nil {
			return answered(err)
		}
		return fn(key, details)
	})
}

func (c *cli) eventsShow() *cobra.Command {
	o := &operator{cli: c}
	cmd := &cobra.Command{
		Use: "show KEY", Short: "Show all that is known of one event", Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.withEvent(cmd.Context(), args[0], func(_ hookonce.Key, details []admin.Detail) error {
				if o.asJSON {
					return rows(o.printer(), details, "", nil)
				}
				for _, d := range details {
					o.showEvent(d)
				}
				return nil
			})
		},
	}
	o.flags(cmd)
	return cmd
}

func oneKey(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s takes one full key, <source>/<key>", cmd.CommandPath())}
	}
	return nil
}

func (o *operator) showEvent(d admin.Detail) {
	p := func(name string, value any) { fmt.Fprintf(o.stdout, "%-12s %s\n", name, oneLine(fmt.Sprint(value))) }
	p("key", escape(d.Key))
	p("type", d.Type)
	p("group", d.Group)
	p("state", d.State)
	p("received", stamp(d.ReceivedAt))
	p("attempts", d.Attempts)
	if d.LastError != "" {
		p("last error", d.LastError)
	}
	for _, s := range d.Steps {
		p("step", fmt.Sprintf("%s  %s  %s (attempt %d) %s", stamp(s.At), s.Name, s.State, s.Attempts, s.Detail))
	}
	for _, n := range d.Timeline {
		p("", fmt.Sprintf("%s  %s  %s", stamp(n.At), n.What, n.Detail))
	}
	fmt.Fprintln(o.stdout)
}

// pages follows a listing until limit items are there; 0 means all.
func pages[T any](limit int, next func(admin.Page) (admin.List[T], error)) ([]T, error) {
	const page = 500
	var all []T
	for after := ""; ; {
		n := page
		if limit > 0 {
			n = min(n, limit-len(all))
		}
		l, err := next(admin.Page{Limit: n, After: after})
		if err != nil {
			return nil, err
		}
		all = append(all, l.Items...)
		if after = l.Next; after == "" || limit > 0 && len(all) >= limit {
			return all, nil
		}
	}
}

// escape writes a key of the API as the command line does.
func escape(key string) string {
	k, err := admin.ParseFullKey(key)
	if err != nil {
		return key
	}
	return k.Escaped()
}

// stamp is a time for a column.
func stamp(t admin.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

// replayOrDiscard is what both changes have in common.
type replayOrDiscard func(ctx context.Context, c *admin.Client, ch admin.Change, each func(admin.Line)) (admin.Totals, error)

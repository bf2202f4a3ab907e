package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/admin"
)

func (c *cli) pauseCommand() *cobra.Command {
	var reason string
	cmd := c.groupCommand("pause", "Keep a group from taking events, in every process and over restarts",
		func(ctx context.Context, api *admin.Client, group string) (admin.Group, error) {
			return api.Pause(ctx, group, reason)
		})
	cmd.Flags().StringVar(&reason, "reason", "", "why, for whoever finds it paused")
	return cmd
}

func (c *cli) resumeCommand() *cobra.Command {
	return c.groupCommand("resume", "Let a paused group go on",
		func(ctx context.Context, api *admin.Client, group string) (admin.Group, error) {
			return api.Resume(ctx, group)
		})
}

func (c *cli) groupCommand(use, short string, do func(ctx context.Context, api *admin.Client, group string) (admin.Group, error)) *cobra.Command {
	o := &operator{cli: c}
	cmd := &cobra.Command{
		Use: use + " GROUP", Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return usageError{fmt.Errorf("%s takes the name of one consumer group", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.with(cmd.Context(), func(api *admin.Client) error {
				g, err := do(cmd.Context(), api, args[0])
				if err != nil {
					return answered(err)
				}
				if o.asJSON {
					return rows(o.printer(), []admin.Group{g}, "", nil)
				}
				state := "takes events"
				if g.Paused {
					state = "is paused"
				}
				fmt.Fprintf(o.stdout, "group %s %s\n", g.Group, state)
				return nil
			})
		},
	}
	o.flags(cmd)
	return cmd
}

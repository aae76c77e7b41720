package cli

import (
	"github.com/spf13/cobra"

	"headgate.dev/headgate/probe/once"
)

// probeChildCommand is the child process that an agent runs for a measurement.
func probeChildCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "once", Short: "Run one measurement for an agent", Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return once.Run(c.Context(), a.in, a.out) },
	}
}

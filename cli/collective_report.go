package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/view"
)

func collectiveReportCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "report",
		Short: "Report the congestions of connection sets: the parts that were meant, and those that were had",
		Long: `Report sums up the congestions that "headgate collective run" has seen, with or without
--dry-run: how many there were, which part of what the set carried each service had, which
part it was meant to have, and the rate that it would have had with that. A service that
asked for less than it was offered had what it asked for, and has no parts.

After some days of a dry run the report shows what control would change. Congestions are
kept for a week. Root is required.`,
		Example: `  headgate collective report
  headgate collective report --since 24h -o json`,
		Args: cobra.NoArgs,
	}
	instance := instanceFlag(c)
	since := c.Flags().String("since", "7d", "start: a duration before now, or a time such as 2026-05-01T00:00:00Z")
	output := outputFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkInstance(*instance); err != nil {
			return usageError{err, c.CommandPath()}
		}
		from, err := parseTime(*since, time.Now())
		if err != nil {
			return usageError{fmt.Errorf("--since: %w", err), c.CommandPath()}
		}
		all, err := host.Congestions(*instance, from)
		if err != nil {
			return withRootRemedy(err)
		}
		reports := host.Reports(all)
		return a.print(*output, reports, func(w io.Writer) error { return view.WriteCongestions(w, reports, from) })
	}
	return c
}

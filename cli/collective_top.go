package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"headgate/cli/view"
	"headgate/collective/host"
)

func collectiveTopCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch the sets of a running program live",
		Long: `Top asks "headgate collective run" again and again: for each set whether it is controlled
and since when, what it carries of what it needs, and what of that it sent again, now and
in the time before; for each connection whether it is capped, free, idle or still being
learnt, what it needs, its rate, its share of the set beside the part that it is to have,
its cap (its pace, or its window with the seed's law), and its share in the last 60
readings. Keys: q quit, p pause, arrows scroll.

With --server it is of a host of a service, and of the sets that its controllers want of it.

Where standard output is not a terminal it prints the same again and again, and with -o
json an array of all sets a line. NO_COLOR in the environment takes colours away.`,
		Example: `  headgate collective top
  headgate collective top --once
  headgate collective top --server default --host web1
  headgate collective top -o json | jq -c '.[].connections[]'`,
		Args: cobra.NoArgs,
	}
	instance := instanceFlag(c)
	interval := c.Flags().Duration("interval", time.Second, "time between two readings")
	once := c.Flags().Bool("once", false, "print one interval and end")
	output, at := setsFlag(c), thereFlags(c)
	c.MarkFlagsMutuallyExclusive("server", "instance")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkInstance(*instance); err != nil {
			return usageError{err, c.CommandPath()}
		}
		if *interval < minInterval || *interval > maxInterval {
			return usageError{fmt.Errorf("--interval %v is not possible: write %v to %v", *interval, minInterval, maxInterval), c.CommandPath()}
		}
		source := func() ([]host.State, error) { return a.setsOf(c.Context(), at, *instance) }
		// What does not run at all is an error and not an empty view.
		if _, err := source(); err != nil {
			return err
		}
		width, live := a.terminal()
		if !live {
			width = math.MaxInt
		}
		switch {
		case *output == "json":
			return a.collectiveTop(source, *interval, *once, func(states []host.State, _ []view.Set) error {
				return json.NewEncoder(a.out).Encode(states)
			})
		case live && !*once:
			return a.topScreen(view.NewSetScreen(source, *interval, view.NewTheme(a.out)))
		}
		return a.collectiveTop(source, *interval, *once, func(_ []host.State, sets []view.Set) error {
			for _, line := range view.SetLines(sets, view.NewTheme(a.out), width) {
				if _, err := fmt.Fprintln(a.out, line); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return c
}

// collectiveTop prints what is asked for each interval, the first time after the second
// reading.
func (a *app) collectiveTop(source func() ([]host.State, error), interval time.Duration, once bool, print func([]host.State, []view.Set) error) error {
	ctx, stop := interrupted()
	defer stop()
	var tracker view.SetTracker
	first := true
	for next := time.Now(); ; next = next.Add(max(interval, time.Since(next))) {
		if !sleepUntil(ctx, next) {
			return nil
		}
		states, err := source()
		if errors.Is(err, host.ErrNotRunning) && !first {
			return nil // it has ended
		}
		if err != nil {
			return err
		}
		sets := tracker.Update(states)
		if first {
			first = false
			continue
		}
		if err := print(states, sets); err != nil || once {
			return err
		}
	}
}

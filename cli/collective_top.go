package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/view"
)

func collectiveTopCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch the connection sets of a running program live",
		Long: `Top polls "headgate collective run". For each set it shows whether the set is controlled
and since when, its rate and its learned rate, and the retransmitted part now and in the
period before. For each connection it shows the state, the learned rate, the rate, the
share of the set's rate beside the target share, the cap (its pace, or its window with
the law of the paper), and the share in the last 60 readings. Keys: q quit, p pause, arrows
scroll.

With --server, top shows the sets that the controller configured on a host of a service.

If standard output is not a terminal, top prints the readings one after the other; with
-o json, one array of all sets per line. Set NO_COLOR in the environment to disable
colours.`,
		Example: `  headgate collective top
  headgate collective top --once
  headgate collective top --server default --host web1
  headgate collective top -o json | jq -c '.[].connections[]'`,
		Args: cobra.NoArgs,
	}
	instance := instanceFlag(c)
	interval := c.Flags().Duration("interval", time.Second, "time between two readings")
	once := c.Flags().Bool("once", false, "print one interval and exit")
	output, at := setsFlag(c), serverFlags(c)
	c.MarkFlagsMutuallyExclusive("server", "instance")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkInstance(*instance); err != nil {
			return usageError{err, c.CommandPath()}
		}
		if *interval < minInterval || *interval > maxInterval {
			return usageError{fmt.Errorf("--interval %v is out of range: set %v to %v", *interval, minInterval, maxInterval), c.CommandPath()}
		}
		source := func() ([]host.State, error) { return a.setsOf(c.Context(), at, *instance) }
		// An instance that is not running is an error, not an empty view.
		if _, err := source(); err != nil {
			return err
		}
		width, live := view.Width(a.out)
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
			return view.WriteSetLines(a.out, sets, width)
		})
	}
	return c
}

// collectiveTop prints a reading each interval, until the instance stops.
func (a *app) collectiveTop(source func() ([]host.State, error), interval time.Duration, once bool, print func([]host.State, []view.Set) error) error {
	ctx, stop := interrupted()
	defer stop()
	var tracker view.SetTracker
	began := false
	err := view.Poll(ctx, interval, once, source, func(states []host.State, first bool) error {
		began = true
		if sets := tracker.Update(states); !first {
			return print(states, sets)
		}
		return nil
	})
	if began && errors.Is(err, host.ErrNotRunning) {
		return nil
	}
	return err
}

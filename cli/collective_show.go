package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
)

func collectiveShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Print the state of the connection sets of a running program",
		Long: `Show queries "headgate collective run" for its sets: whether each is controlled, and for
each connection the learned rate, the rate of the last second, the round-trip time, the
pacing and window caps, and the retransmitted segments since it was opened. A set whose
cgroup or unit does not exist is waiting. With --server, show prints the sets that the
controller configured on a host of a service.`,
		Example: `  headgate collective show
  headgate collective show --server default --host web1
  headgate collective show -o json`,
		Args: cobra.NoArgs,
	}
	instance := instanceFlag(c)
	output, at := outputFlag(c), serverFlags(c)
	c.MarkFlagsMutuallyExclusive("server", "instance")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkInstance(*instance); err != nil {
			return usageError{err, c.CommandPath()}
		}
		states, err := a.setsOf(c.Context(), at, *instance)
		if err != nil {
			return err
		}
		return a.print(*output, states, func(w io.Writer) error { return collectiveTable(w, states) })
	}
	return c
}

// setsOf returns the state of the sets of a local instance or, with --server, of a host of a service.
func (a *app) setsOf(ctx context.Context, at *remoteHost, instance string) ([]host.State, error) {
	if at.isSet() {
		return a.serverSets(ctx, at)
	}
	return queryInstance(instance)
}

// queryInstance queries a local instance for its sets.
func queryInstance(instance string) ([]host.State, error) {
	states, err := host.QueryStates(instance)
	return states, withInstanceRemedy(instance, err)
}

// withInstanceRemedy adds the remedy to the error of a query.
func withInstanceRemedy(instance string, err error) error {
	switch {
	case errors.Is(err, host.ErrNotRunning):
		if others := slices.DeleteFunc(host.Running(), func(name string) bool { return name == instance }); len(others) > 0 {
			return fmt.Errorf("instance %s is not running: set --instance to one of %s", instance, strings.Join(others, ", "))
		}
		return fmt.Errorf("%w: start it with \"headgate collective run -f FILE\"", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("cannot query the running program: %w", err)
	}
	return err
}

// collectiveTable prints a table with a line for each connection.
func collectiveTable(to io.Writer, states []host.State) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tSTATE\tLOCAL\tREMOTE\tLEARNED\tRATE\tRTT\tPACE\tWINDOW\tRETRANSMITTED")
	for _, s := range states {
		if len(s.Connections) == 0 {
			fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\n", setName(s), setState(s))
		}
		for _, c := range s.Connections {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%v\t%s\t%s\t%d\n", setName(s), setState(s), c.Local, c.Remote,
				learnedCell(c), rounded.Rate(float64(c.Rate)), c.RTT.Round(10*time.Microsecond), rateOrDash(c.Pace), windowOrDash(c.Window), c.Retransmits)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range states {
		if s.Error != "" {
			fmt.Fprintf(to, "set %s: %s\n", setName(s), s.Error)
		}
	}
	return nil
}

// learnedCell is the cell of the column LEARNED: the connection's weight, or its learned rate.
func learnedCell(c host.ConnectionState) string {
	if c.Weight > 0 {
		return shareBasis(c)
	}
	return rateOrDash(c.Needs)
}

// rateOrDash formats a rate, or "-" for none.
func rateOrDash(r unit.Rate) string {
	if r == 0 {
		return "-"
	}
	return rounded.Rate(float64(r))
}

// windowOrDash formats a window, or "-" for none.
func windowOrDash(b unit.Bytes) string {
	if b == 0 {
		return "-"
	}
	return probe.FormatBytes(float64(b))
}

// setName is the name of a set, with the destination for a set with per: destination.
func setName(s host.State) string {
	if s.Destination != "" {
		return s.Set + " to " + s.Destination
	}
	return s.Set
}

// setState is the cell of the column STATE.
func setState(s host.State) string {
	switch {
	case s.Controlling && s.DryRun:
		return "would be controlled"
	case s.Controlling:
		return "controlled"
	case s.Waiting:
		return "waiting"
	case s.Error != "" && len(s.Connections) == 0:
		return "error"
	}
	return "released"
}

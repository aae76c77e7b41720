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

	"headgate/cli/view"
	"headgate/collective/host"
	"headgate/unit"
)

func collectiveShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show",
		Short: "Print what the sets of a running program are doing",
		Long: `Show asks "headgate collective run" for its sets: whether each is controlled, and for each
connection what it was found to need, its rate in the last second, the round trip, what
holds it and what it has sent again since it began. A set whose cgroup or unit is not there
is waiting for it. With --server it is of a host of a service, and of the sets that its
controllers want of it.`,
		Example: `  headgate collective show
  headgate collective show --server default --host web1
  headgate collective show -o json`,
		Args: cobra.NoArgs,
	}
	instance := instanceFlag(c)
	output, at := outputFlag(c), thereFlags(c)
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

// setsOf is what the sets of a program are doing, or of a host of a service.
func (a *app) setsOf(ctx context.Context, at *there, instance string) ([]host.State, error) {
	if at.asked() {
		return a.setsThere(ctx, at)
	}
	return askCollective(instance)
}

// askCollective asks a program for its sets.
func askCollective(instance string) ([]host.State, error) {
	states, err := host.Ask(instance)
	return states, collectiveAsked(instance, err)
}

// collectiveAsked says what to do about an answer that is an error.
func collectiveAsked(instance string, err error) error {
	switch {
	case errors.Is(err, host.ErrNotRunning):
		if others := slices.DeleteFunc(host.Running(), func(name string) bool { return name == instance }); len(others) > 0 {
			return fmt.Errorf("there is nobody to ask: no instance %s runs, but %s: write --instance", instance, strings.Join(others, ", "))
		}
		return fmt.Errorf("there is nobody to ask: %w; start one with \"headgate collective run -f FILE\"", err)
	case errors.Is(err, os.ErrPermission):
		return fmt.Errorf("the program that runs cannot be asked: %w", err)
	}
	return err
}

// collectiveTable is for people: a line for each connection.
func collectiveTable(to io.Writer, states []host.State) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SET\tSTATE\tLOCAL\tREMOTE\tNEEDS\tRATE\tRTT\tPACE\tWINDOW\tRESENT")
	for _, s := range states {
		if len(s.Connections) == 0 {
			fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\t-\t-\t-\t-\n", setName(s), setState(s))
		}
		for _, c := range s.Connections {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%v\t%s\t%s\t%d\n", setName(s), setState(s), c.Local, c.Remote,
				needsText(c), view.Rate(float64(c.Rate)), c.RTT.Round(10*time.Microsecond), rateOrDash(c.Pace), windowOrDash(c.Window), c.Retransmits)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range states {
		if s.Trouble != "" {
			fmt.Fprintf(to, "set %s: %s\n", setName(s), s.Trouble)
		}
	}
	return nil
}

// needsText is what counts of a connection, in the column of needs.
func needsText(c host.ConnectionState) string {
	if c.Weight > 0 {
		return partText(c)
	}
	return rateOrDash(c.Needs)
}

// rateOrDash is a rate, or - for none.
func rateOrDash(r unit.Rate) string {
	if r == 0 {
		return "-"
	}
	return view.Rate(float64(r))
}

// windowOrDash is a window, or - for none.
func windowOrDash(b unit.Bytes) string {
	if b == 0 {
		return "-"
	}
	return sizeText(float64(b))
}

// setName is a set's, and the destination of its part.
func setName(s host.State) string {
	if s.Destination != "" {
		return s.Set + " to " + s.Destination
	}
	return s.Set
}

// setState is a set's state in a word.
func setState(s host.State) string {
	switch {
	case s.Controlling && s.DryRun:
		return "would be controlled"
	case s.Controlling:
		return "controlled"
	case s.Waiting:
		return "waiting"
	case s.Trouble != "" && len(s.Connections) == 0:
		return "trouble"
	}
	return "free"
}

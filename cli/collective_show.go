package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/view"
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
		return a.print(*output, states, func(w io.Writer) error { return view.WriteSets(w, states) })
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

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"headgate/collective/host"
	"headgate/collective/sockops"
)

func collectiveClearCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "clear [SET]...",
		Short: "Take away what a killed program left in the kernel",
		Long: `Clear takes away the programs and the table that "headgate collective run" left as it was
killed. The next run would take them over: clear is for a host that is to have none. Nobody is
capped by them, for caps end within a second of a connection's next packet. For capped
connections that send nothing the programs stay, and let them go as they send again.

With --server the sets that are named, or all, are taken away from a host of a service.`,
		Example: `  headgate collective clear
  headgate collective clear --server default --host web1 db
  headgate collective clear --instance backup`,
	}
	instance := instanceFlag(c)
	output, at := outputFlag(c), thereFlags(c)
	c.MarkFlagsMutuallyExclusive("server", "instance")
	c.Args = func(c *cobra.Command, args []string) error {
		if !at.asked() {
			return cobra.NoArgs(c, args)
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if at.asked() {
			return a.dismissThere(c.Context(), at, args, *output)
		}
		if err := checkInstance(*instance); err != nil {
			return usageError{err, c.CommandPath()}
		}
		found, idle, err := host.Clear(*instance)
		if errors.Is(err, sockops.ErrTaken) {
			return fmt.Errorf("%s is not cleared, because its program runs: end it, and it takes away all that is its own", *instance)
		}
		if errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("%s is not cleared: %w", *instance, needRoot(err))
		}
		if err != nil {
			return err
		}
		got := collectiveCleared{*instance, found && idle == 0, idle}
		return a.print(*output, got, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s: %s\n", *instance, got)
			return err
		})
	}
	return c
}

// collectiveCleared is what -o prints.
type collectiveCleared struct {
	Instance string `json:"instance"`
	Cleared  bool   `json:"cleared"`
	Idle     int    `json:"idle"` // connections for which it has to stay
}

func (c collectiveCleared) String() string {
	switch {
	case c.Cleared:
		return "cleared"
	case c.Idle > 0:
		return fmt.Sprintf("%s capped and sending nothing: it stays until they send or end, clear it then", count(c.Idle, "connection"))
	}
	return "nothing to clear"
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/collective/sockops"
	"headgate.dev/headgate/internal/text"
)

func collectiveClearCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "clear [SET]...",
		Short: "Remove what a killed program left in the kernel",
		Long: `Clear removes the eBPF programs and the table that "headgate collective run" leaves if it
is killed. The next run reuses them, so clear is needed only if there is no next run. They
cap no connection that sends: caps end within a second of a connection's next packet. While
capped connections are idle, the programs stay, to release the connections when they send
again.

With --server, the named connection sets, or all, are deleted from a host of a service.`,
		Example: `  headgate collective clear
  headgate collective clear --server default --host web1 db
  headgate collective clear --instance backup`,
	}
	instance := instanceFlag(c)
	output, at := outputFlag(c), serverFlags(c)
	c.MarkFlagsMutuallyExclusive("server", "instance")
	c.Args = func(c *cobra.Command, args []string) error {
		if !at.isSet() {
			return cobra.NoArgs(c, args)
		}
		return nil
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if at.isSet() {
			return a.deleteSetsOnServer(c.Context(), at, args, *output)
		}
		if err := checkInstance(*instance); err != nil {
			return usageError{err, c.CommandPath()}
		}
		found, idle, err := host.Clear(*instance)
		if errors.Is(err, sockops.ErrInUse) {
			return fmt.Errorf("cannot clear %s: its program is running: stop it, and it removes its own objects", *instance)
		}
		if errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("cannot clear %s: %w", *instance, withRootRemedy(err))
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

// collectiveCleared is the output of collective clear -o.
type collectiveCleared struct {
	Instance string `json:"instance"`
	Cleared  bool   `json:"cleared"`
	Idle     int    `json:"idle"` // capped idle connections, for which the programs have to stay
}

func (c collectiveCleared) String() string {
	switch {
	case c.Cleared:
		return "cleared"
	case c.Idle > 0:
		return fmt.Sprintf("not cleared: %s capped and idle: clear again when they have sent or closed", text.Count(c.Idle, "connection"))
	}
	return "nothing to clear"
}

package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/internal/ask"
)

func collectiveJoinCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "join SET",
		Short: "Add a process's connection to a set of a running program",
		Long: `Join passes an open connection of a process to "headgate collective run", which adds it to
the set until the connection closes. A program can join its own connections if its user is
named under "join" in the set's configuration: see docs/collective.md.

It needs Linux 6.13.`,
		Example: `  headgate collective join db --pid 1234 --fd 7
  headgate collective join backup --pid 1234 --fd 7 --weight 4`,
		Args: cobra.ExactArgs(1),
	}
	instance := instanceFlag(c)
	pid := c.Flags().Int("pid", 0, "the process")
	fd := c.Flags().Int("fd", -1, "the `NUMBER` of the file descriptor: ls -l /proc/PID/fd lists them")
	weight := c.Flags().Float64("weight", 0, "the connection's weight in the set, if the set has configured weights")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch err := checkInstance(*instance); {
		case err != nil:
			return usageError{err, c.CommandPath()}
		case *pid <= 0 || *fd < 0:
			return usageError{errors.New("connection is missing: set --pid and --fd"), c.CommandPath()}
		case c.Flags().Changed("weight") && !(*weight > 0 && *weight <= 1e6):
			return usageError{fmt.Errorf("--weight %v is out of range: set a number above 0 and up to 1e6, such as 8", *weight), c.CommandPath()}
		}
		socket, err := ask.Descriptor(*pid, *fd)
		if errors.Is(err, os.ErrPermission) {
			return withRootRemedy(err)
		}
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		if err := host.Join(*instance, args[0], *weight, socket); err != nil {
			return withInstanceRemedy(*instance, err)
		}
		a.note("descriptor %d of process %d joined the set %s", *fd, *pid, args[0])
		return nil
	}
	return c
}

package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate/collective/host"
)

func collectiveJoinCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "join SET",
		Short: "Have a process's connection in a set of a running program",
		Long: `Join passes a connection that a process has open to "headgate collective run", which then
has it in the set until it ends. A program can do so itself, of its own connections, if its
user is named under "join" in the set's configuration: docs/collective.md says how.

It needs Linux 6.13.`,
		Example: `  headgate collective join db --pid 1234 --fd 7
  headgate collective join backup --pid 1234 --fd 7 --weight 4`,
		Args: cobra.ExactArgs(1),
	}
	instance := instanceFlag(c)
	pid := c.Flags().Int("pid", 0, "the process")
	fd := c.Flags().Int("fd", -1, "the `NUMBER` of its descriptor: ls -l /proc/PID/fd lists them")
	weight := c.Flags().Float64("weight", 0, "the connection's part beside the others', where they have weights by hand")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch err := checkInstance(*instance); {
		case err != nil:
			return usageError{err, c.CommandPath()}
		case *pid <= 0 || *fd < 0:
			return usageError{errors.New("there is no connection: write --pid and --fd"), c.CommandPath()}
		case c.Flags().Changed("weight") && !(*weight > 0 && *weight <= 1e6):
			return usageError{fmt.Errorf("--weight %v is not one: write a number above 0, such as 8", *weight), c.CommandPath()}
		}
		socket, err := descriptorOf(*pid, *fd)
		if errors.Is(err, os.ErrPermission) {
			return needRoot(err)
		}
		if err != nil {
			return err
		}
		defer unix.Close(socket)
		if err := host.Join(*instance, args[0], *weight, socket); err != nil {
			return collectiveAsked(*instance, err)
		}
		a.note("descriptor %d of process %d is in the set %s", *fd, *pid, args[0])
		return nil
	}
	return c
}

// descriptorOf is a copy of another process's descriptor.
func descriptorOf(pid, fd int) (int, error) {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot find process %d: %w", pid, err)
	}
	defer unix.Close(p)
	got, err := unix.PidfdGetfd(p, fd, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot have descriptor %d of process %d: %w", fd, pid, err)
	}
	return got, nil
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/internal/ask"
)

// descriptorFlags has the flags for a connection's descriptor that "headgate assign" and unassign pass to the agent.
type descriptorFlags struct {
	fd, pid int
	socket  *string
}

func passedFlags(c *cobra.Command) *descriptorFlags {
	p := &descriptorFlags{}
	c.Flags().IntVar(&p.fd, "fd", -1, "instead of --conn: the `NUMBER` of the connection's file descriptor, which is passed to the agent")
	c.Flags().IntVar(&p.pid, "pid", 0, "the process that has the descriptor open; by default, this command, which has inherited it")
	p.socket = socketFlag(c, "the `PATH` of the agent's socket, for --fd")
	return p
}

// given reports whether --fd was set.
func (p *descriptorFlags) given() bool { return p.fd >= 0 }

// needed returns an error if --dev, --conn and --fd are incomplete or contradict each other.
func (p *descriptorFlags) needed(c *cobra.Command, dev string, conns []string) error {
	changed := c.Flags().Changed
	var err error
	switch {
	case changed("fd") && p.fd < 0:
		err = fmt.Errorf("--fd %d is not a descriptor: set its number, such as 3", p.fd)
	case changed("pid") && p.pid <= 0:
		err = fmt.Errorf("--pid %d is not a process ID: set a number above 0", p.pid)
	case p.given() && len(conns) > 0:
		err = errors.New("--conn and --fd exclude each other: set one of them")
	case p.given() && changed("server"):
		err = errors.New("--fd is not supported with --server, because a descriptor is local: set --conn")
	case p.given():
	case changed("pid"):
		err = errors.New("--fd is missing: " + c.Flag("fd").Usage)
	case dev == "":
		err = errors.New("--dev is missing: " + c.Flag("dev").Usage)
	case len(conns) == 0:
		err = errors.New("--conn is missing: " + c.Flag("conn").Usage)
	}
	if err != nil {
		return usageError{err, c.CommandPath()}
	}
	return nil
}

// pass sends the request with the descriptor to the agent.
func (a *app) pass(p *descriptorFlags, r local.Request, f format) error {
	fd := p.fd
	if p.pid > 0 {
		copied, err := ask.Descriptor(p.pid, p.fd)
		if errors.Is(err, os.ErrPermission) {
			return withRootRemedy(err)
		}
		if err != nil {
			return err
		}
		defer unix.Close(copied)
		fd = copied
	} else if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return fmt.Errorf("descriptor %d is not a socket inherited by this command: %w", fd, err)
	}
	out, err := local.Agent{Path: *p.socket}.Do(r, fd)
	if errors.Is(err, local.ErrNotRunning) {
		return fmt.Errorf("%w: start \"headgate agent\", or set --socket to its path", err)
	}
	if err != nil {
		return err
	}
	return a.print(f, out, func(w io.Writer) error {
		where := "unassigned"
		if out.Group != "" {
			where = "in group " + out.Group
		}
		_, err := fmt.Fprintf(w, "%s: %s %s\n", strings.Join(out.Devs, ", "), out.Connection, where)
		return err
	})
}

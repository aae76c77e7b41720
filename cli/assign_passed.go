package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate/api/local"
)

// passed is a connection's descriptor that "headgate assign" and unassign pass to the agent.
type passed struct {
	fd, pid int
	socket  *string
}

func passedFlags(c *cobra.Command) *passed {
	p := &passed{}
	c.Flags().IntVar(&p.fd, "fd", -1, "instead of --conn: the `NUMBER` of the connection's descriptor, which is passed to the agent")
	c.Flags().IntVar(&p.pid, "pid", 0, "the process whose descriptor it is; without, this command has inherited it")
	p.socket = socketFlag(c, "the `PATH` of the agent's socket, for --fd")
	return p
}

// given tells whether it was.
func (p *passed) given() bool { return p.fd >= 0 }

// needed asks for what is missing of --dev, --conn and --fd.
func (p *passed) needed(c *cobra.Command, dev string, conns []string) error {
	changed := c.Flags().Changed
	var err error
	switch {
	case changed("fd") && p.fd < 0:
		err = fmt.Errorf("--fd %d is not a descriptor: write its number, such as 3", p.fd)
	case changed("pid") && p.pid <= 0:
		err = fmt.Errorf("--pid %d is not a process", p.pid)
	case p.given() && len(conns) > 0:
		err = errors.New("--conn and --fd are two ways to say the same: write one")
	case p.given() && changed("server"):
		err = errors.New("--fd is of this host, and --server of another: write --conn")
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

// pass passes it to the agent.
func (a *app) pass(p *passed, r local.Request, f format) error {
	fd := p.fd
	if p.pid > 0 {
		copied, err := descriptorOf(p.pid, p.fd)
		if errors.Is(err, os.ErrPermission) {
			return needRoot(err)
		}
		if err != nil {
			return err
		}
		defer unix.Close(copied)
		fd = copied
	} else if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return fmt.Errorf("descriptor %d is no socket that this command has inherited: %w", fd, err)
	}
	out, err := local.Agent{Path: *p.socket}.Ask(r, fd)
	if errors.Is(err, local.ErrNotRunning) {
		return fmt.Errorf("%w: start \"headgate agent\", or write --socket and its path", err)
	}
	if err != nil {
		return err
	}
	return a.print(f, out, func(w io.Writer) error {
		where := "back under the rules"
		if out.Group != "" {
			where = "in group " + out.Group
		}
		_, err := fmt.Fprintf(w, "%s: %s %s\n", strings.Join(out.Devs, ", "), out.Connection, where)
		return err
	})
}

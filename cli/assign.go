package cli

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/sockets"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
)

func assignCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "assign GROUP --dev DEV --conn CONNECTION",
		Short: "Assign a connection to a group, with precedence over all rules",
		Long: `Assign puts connections in a group, in each direction that has a group of that
name. The assignment lasts until unassign, clear, or a reboot. A connection is a
protocol and its two endpoints, in either order. It may be assigned before it opens:
assign says if it has an end on this host and is not open.

With --fd, the file descriptor of an open connection is passed to the agent of this
host. That needs no privileges if the group's configuration names the user under "join".
Without --dev, the connection is assigned on all of the agent's devices that have the
group.`,
		Example: `  headgate assign backup --dev eth0 --conn 'tcp 10.0.0.1:443 10.0.0.2:55000'
  headgate assign tenant/web --dev eth0 --conn 'udp [fd00::1]:53 [fd00::2]:999'
  list-connections | headgate assign bulk --dev eth0 --conn -
  exec 3<>/dev/tcp/192.0.2.1/873; headgate assign backup --fd 3
  headgate assign backup --pid 1234 --fd 7`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeGroups(),
	}
	dev, conns := a.connFlags(c)
	fd := passedFlags(c)
	output, at := outputFlag(c), serverFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := fd.needed(c, *dev, *conns); err != nil {
			return err
		}
		if fd.given() {
			return a.pass(fd, local.Request{Assign: args[0], Dev: *dev}, *output)
		}
		if at.isSet() {
			return a.assignRemote(c, at, *dev, args[0], *conns)
		}
		*dev = a.dev(*dev)
		list, state, err := a.connsOn(c, *dev, *conns)
		if err != nil {
			return err
		}
		path, err := state.Plan.Leaf(args[0])
		if err != nil {
			return fmt.Errorf("%s: %w; it has %s", *dev, err, strings.Join(leaves(state.Plan), ", "))
		}
		assignments := make([]shaper.Assignment, len(list))
		for i, one := range list {
			assignments[i] = shaper.Assignment{Conn: one, Group: path}
		}
		if err := a.engines[state.Engine].Assign(*dev, assignments); err != nil {
			return err
		}
		missing := missingOf(list)
		if len(missing) > 0 {
			a.note("headgate: this host has no open connection %s: an assignment applies when its connection opens", strings.Join(missing, ", "))
		}
		return a.print(*output, assignOutput{*dev, path, len(list), missing}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s: %s in group %s\n", *dev, text.Count(len(list), "connection"), path)
			return err
		})
	}
	return c
}

func unassignCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "unassign --dev DEV --conn CONNECTION",
		Short: "Undo the assignment of a connection: its group follows from the rules again",
		Example: `  headgate unassign --dev eth0 --conn 'tcp 10.0.0.1:443 10.0.0.2:55000'
  list-connections | headgate unassign --dev eth0 --conn -
  headgate unassign --pid 1234 --fd 7`,
		Args: cobra.NoArgs,
	}
	dev, conns := a.connFlags(c)
	fd := passedFlags(c)
	output, at := outputFlag(c), serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := fd.needed(c, *dev, *conns); err != nil {
			return err
		}
		if fd.given() {
			return a.pass(fd, local.Request{Unassign: true, Dev: *dev}, *output)
		}
		if at.isSet() {
			return a.assignRemote(c, at, *dev, "", *conns)
		}
		*dev = a.dev(*dev)
		list, state, err := a.connsOn(c, *dev, *conns)
		if err != nil {
			return err
		}
		if err := a.engines[state.Engine].Unassign(*dev, list); err != nil {
			return err
		}
		return a.print(*output, assignOutput{*dev, "", len(list), nil}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s: %s unassigned\n", *dev, text.Count(len(list), "connection"))
			return err
		})
	}
	return c
}

// assignOutput is the output of assign and unassign with -o; for unassign without a group.
type assignOutput struct {
	Dev         string `json:"dev"`
	Group       string `json:"group,omitempty"`
	Connections int    `json:"connections"`
	// Missing are TCP connections with an end on this host that are not open, the first ones of them.
	Missing []string `json:"missing,omitempty"`
}

// missingOf returns those of the connections that have an end on this host and no socket. There are none if the kernel does not list its sockets.
func missingOf(list []shaper.Conn) (missing []string) {
	all, err := sockets.ListTCP()
	if err != nil {
		return nil
	}
	for _, c := range list {
		if c.Proto != unix.IPPROTO_TCP || !all.IsMissing(c.A, c.B) {
			continue
		}
		if missing = append(missing, c.String()); len(missing) > maxListedGroups {
			return append(missing[:maxListedGroups], "and more")
		}
	}
	return missing
}

func (a *app) connFlags(c *cobra.Command) (dev *string, conns *[]string) {
	dev = a.devFlag(c, "", "the device")
	conns = c.Flags().StringArray("conn", nil, "the connection, such as 'tcp 10.0.0.1:443 10.0.0.2:55000', or - for one a line on standard input (may be repeated)")
	return dev, conns
}

// connsOn parses connections and reads the state of their device.
func (a *app) connsOn(c *cobra.Command, dev string, texts []string) (list []shaper.Conn, state shaper.State, err error) {
	if list, err = a.conns(c, texts); err == nil {
		state, err = a.observer().Observe(dev)
	}
	return list, state, err
}

func (a *app) conns(c *cobra.Command, texts []string) (out []shaper.Conn, err error) {
	add := func(place, text string) error {
		conn, err := parseConn(text)
		if err != nil {
			return usageError{fmt.Errorf("%s%w", place, err), c.CommandPath()}
		}
		out = append(out, conn)
		return nil
	}
	for _, text := range texts {
		if text != "-" {
			if err := add("", text); err != nil {
				return nil, err
			}
			continue
		}
		lines := bufio.NewScanner(a.in)
		for n := 1; lines.Scan(); n++ {
			if line := strings.TrimSpace(lines.Text()); line != "" {
				if err := add(fmt.Sprintf("line %d: ", n), line); err != nil {
					return nil, err
				}
			}
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
	}
	return out, nil
}

func parseConn(text string) (shaper.Conn, error) {
	proto, a, b, err := group.ParseConn(text)
	return shaper.Conn{Proto: proto, A: a, B: b}, err
}

// maxListedGroups limits the groups or connections that a message lists; a device may have thousands.
const maxListedGroups = 20

// leaves returns the paths of the groups to which a connection can be assigned: the leaf groups.
func leaves(p shaper.Plan) (paths []string) {
	for _, t := range []*group.Tree{p.Out, p.In} {
		if t == nil {
			continue
		}
		for _, n := range t.Nodes {
			if n.Leaf && !slices.Contains(paths, n.Path) {
				paths = append(paths, n.Path)
			}
			if len(paths) > maxListedGroups {
				return append(paths[:maxListedGroups], "and more")
			}
		}
	}
	return paths
}

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/explain"
	"headgate.dev/headgate/group"
)

func explainCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain {--packet PACKET | --demand GROUP=RATE | --busy} --dev DEV",
		Short: "Show which rule, group and class a packet gets, or which rate each group would get",
		Long: `Explain evaluates the rules and assignments in force on a device for a packet. It
prints the rule or assignment that matches, the group, and the kernel's class. With -f it
also prints the line of the rule, and works on a device that has no groups yet.

A packet is a protocol, a source and a destination (with ports for tcp, udp and
sctp), followed by other fields that rules can match: dscp, vlan, pcp, mark, smac, cgroup
and (ICMP) type, each with a value, and the words ack (a TCP segment without data) and
fragment (a fragment other than the first). Packets other than IP have a name: arp, lldp,
stp, lacp, eapol. Whether a packet is control traffic also depends on ttl (or hop limit)
and length (of the IP packet). Their defaults depend on the protocol.

Source and destination are the packet's own: in a packet that the device receives,
the source is the remote end.

With --server, explain uses the desired state of a host of a service: the rules, and the
connections that were assigned through the service. Classes are known only on the host.

With --demand or --busy, explain prints which rate each group would get, in each
direction that has the group, and what limits the rate: the group's demand, a ceiling, or
the link. A demand is a rate, or max for as much as the group can get. Groups without
--demand are idle; with --busy they have the demand max. Nothing is sent or changed. The
configuration is that in force on --dev, or that of -f, where --dev is needed only if the
file configures several devices. The rates include frames, and are those of the default
engine, without control traffic and without the time that TCP takes to reach its rate.`,
		Example: `  headgate explain --packet 'tcp 10.0.0.1:443 10.0.0.2:55000' --dev eth0
  headgate explain --packet 'udp [fd00::1]:53 [fd00::2]:999 dscp ef mark 7' --dev eth0 -f eth0.yaml
  headgate explain --packet 'udp 10.0.0.1:5060 10.0.0.2:5060 vlan 100 pcp 5 smac 02:00:5e:10:00:01' --dev eth0
  headgate explain --packet 'tcp 10.0.0.1:40000 10.0.0.2:443 cgroup /system.slice/nginx.service' --dev eth0 --direction out
  headgate explain --packet 'tcp 10.0.0.1:443 10.0.0.2:55000' --dev eth0 --server default --host web1
  headgate explain --demand web=40Mbit --demand backup=max --dev eth0
  headgate explain --busy -f eth0.yaml
  headgate explain --busy --demand backup=0bit --dev eth0 --direction out -o json`,
		Args: cobra.NoArgs,
	}
	text := c.Flags().String("packet", "", "the packet, such as 'tcp 10.0.0.1:443 10.0.0.2:55000'")
	dev := a.devFlag(c, "", "the device")
	direction := c.Flags().String("direction", "both", "out, in or both")
	completeFlag(c, "direction", oneOf("out", "in", "both"))
	demands := c.Flags().StringArray("demand", nil, "print expected rates if a group has this demand, as `GROUP=RATE` or GROUP=max (may be repeated)")
	busy := c.Flags().Bool("busy", false, "print expected rates if all groups without --demand use as much as they can get")
	completeFlag(c, "demand", a.completeDemands())
	c.MarkFlagsMutuallyExclusive("packet", "demand")
	c.MarkFlagsMutuallyExclusive("packet", "busy")
	files, output := fileFlag(c), outputFlag(c)
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		divides := *busy || len(*demands) > 0
		switch {
		case *text == "" && !divides:
			return usageError{errors.New("--packet is missing: set it to a packet, such as 'tcp 10.0.0.1:443 10.0.0.2:55000', or set --demand or --busy for expected rates"), c.CommandPath()}
		case *dev == "" && !(divides && len(*files) > 0):
			return usageError{errors.New("--dev is missing: the device"), c.CommandPath()}
		case *direction != "out" && *direction != "in" && *direction != "both":
			return usageError{fmt.Errorf("%q is not a direction: write out, in or both", *direction), c.CommandPath()}
		}
		if at.isSet() {
			if err := at.rejectFlags(c, "file"); err != nil {
				return err
			}
		}
		if divides {
			p, err := a.planToDivide(c, at, *dev, *files)
			if err != nil {
				return err
			}
			return a.explainDemands(c, p, *direction, *demands, *busy, *output)
		}
		packet, err := group.ParsePacket(*text)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		var e explain.Source
		if at.isSet() {
			e, err = a.explainRemote(c.Context(), at, *dev)
		} else {
			*dev = a.dev(*dev)
			e, err = a.explainer(c, *dev, *files)
		}
		if err != nil {
			return err
		}
		directions := []string{*direction}
		if *direction == "both" {
			directions = []string{"out", "in"}
		}
		answer := e.Explain(*dev, packet, directions...)
		return a.print(*output, answer, answer.Write)
	}
	return c
}

// explainer reads what an explanation on this machine follows from: the actual state, and the configuration in files.
func (a *app) explainer(c *cobra.Command, dev string, files []string) (e explain.Source, err error) {
	if len(files) > 0 {
		set, i, err := a.loadInterface(c, files, dev)
		if err != nil {
			return e, err
		}
		e.File = &i
		set.Interfaces = []config.Interface{i}
		a.warnPlacement(set, true)
	} else {
		a.warnBypassed(dev)
	}
	state, err := a.observer().Observe(dev)
	switch {
	case err == nil:
		e.State = &state
		e.Assigned, _ = a.observer().Assignments(state.Engine, dev) // if the engine cannot list assignments, the rules decide
		e.Clients, _ = a.observer().Clients(state.Engine, dev)      // if this fails, the client's class is left out
	case e.File == nil:
		return e, err
	default:
		a.note("headgate: %v: the result is from the file", err)
	}
	if e.State != nil && e.File != nil && !e.SameRules() {
		a.note("headgate: the rules in the file differ from those in force on %s, so lines are left out: see headgate plan", dev)
		e.File = nil
	}
	return e, nil
}

// loadInterface reads files, and returns the configuration of a device in them; dev may be "" if they configure
// only one.
func (a *app) loadInterface(c *cobra.Command, files []string, dev string) (set config.Set, i config.Interface, err error) {
	if set, err = a.loadInterfaces(c, files, false); err == nil {
		set, err = a.named(set)
	}
	if err != nil {
		return set, i, err
	}
	if dev == "" && len(set.Interfaces) > 1 {
		var all []string
		for _, i := range set.Interfaces {
			all = append(all, i.WrittenDev())
		}
		return set, i, usageError{fmt.Errorf("--dev is missing: the configuration has %s", strings.Join(all, ", ")), c.CommandPath()}
	}
	if dev == "" {
		return set, set.Interfaces[0], nil
	}
	i, ok := set.For(dev)
	if !ok {
		err = fmt.Errorf("%s is not in the configuration", dev)
	}
	return set, i, err
}

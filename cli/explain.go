package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/explain"
	"headgate.dev/headgate/group"
)

func explainCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain --packet PACKET --dev DEV",
		Short: "Show which rule, group and class a packet gets",
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
connections that were assigned through the service. Classes are known only on the host.`,
		Example: `  headgate explain --packet 'tcp 10.0.0.1:443 10.0.0.2:55000' --dev eth0
  headgate explain --packet 'udp [fd00::1]:53 [fd00::2]:999 dscp ef mark 7' --dev eth0 -f eth0.yaml
  headgate explain --packet 'udp 10.0.0.1:5060 10.0.0.2:5060 vlan 100 pcp 5 smac 02:00:5e:10:00:01' --dev eth0
  headgate explain --packet 'tcp 10.0.0.1:40000 10.0.0.2:443 cgroup /system.slice/nginx.service' --dev eth0 --direction out
  headgate explain --packet 'tcp 10.0.0.1:443 10.0.0.2:55000' --dev eth0 --server default --host web1`,
		Args: cobra.NoArgs,
	}
	text := c.Flags().String("packet", "", "the packet, such as 'tcp 10.0.0.1:443 10.0.0.2:55000'")
	dev := a.devFlag(c, "", "the device")
	direction := c.Flags().String("direction", "both", "out, in or both")
	completeFlag(c, "direction", oneOf("out", "in", "both"))
	files, output := fileFlag(c), outputFlag(c)
	requireFlags(c, "packet", "dev")
	at := serverFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		packet, err := group.ParsePacket(*text)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		if *direction != "out" && *direction != "in" && *direction != "both" {
			return usageError{fmt.Errorf("%q is not a direction: write out, in or both", *direction), c.CommandPath()}
		}
		var e explain.Source
		if at.isSet() {
			if err := at.rejectFlags(c, "file"); err != nil {
				return err
			}
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
		set, err := a.loadInterfaces(c, files, false)
		if err == nil {
			set, err = a.named(set)
		}
		if err != nil {
			return e, err
		}
		i, ok := set.For(dev)
		if !ok {
			return e, fmt.Errorf("%s is not in the configuration", dev)
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

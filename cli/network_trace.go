package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
)

func networkTraceCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace --packet PACKET --from HOST",
		Short: "Follow a packet through the tables of the switches, as they are now",
		Long: `Trace follows a packet through the flows, groups and ports that the switches have now, and prints each
hop: the flow that matches in each table, the buckets of groups, and where the packet and its copies
end. Flows of other programs are named. Nothing is sent: the switches are asked for what they have.

A packet is written as for "headgate explain": a protocol, a source and a destination (with ports for
tcp, udp and sctp), and other fields with their values: vlan, pcp, dscp, ttl, length, smac, dmac and
(ICMP) type. Further forms are "arp ADDRESS" and "nd ADDRESS", which ask who has an address, and
"broadcast". Without dmac, the packet goes to the host that has the destination address; a packet to
another network needs dmac, the MAC of the router.

HOST sends the packet. It is the MAC, address or name of a host, or a port: the datapath id or the name
of a switch, a slash, and the number or the name of the port. The MAC and the VLAN are the host's,
without smac and vlan.

A label names the switch of the destination, and a frame has it between switches. "rerouted" is in the
label of a frame that took a backup. A meter is taken to pass everything.`,
		Example: `  headgate network trace --packet 'tcp 10.0.0.1:1000 10.0.0.2:80' --from 10.0.0.1
  headgate network trace --packet 'arp 10.0.0.2' --from 02:00:00:00:00:01
  headgate network trace --packet 'udp 10.0.0.1:53 192.0.2.1:53 dmac 02:00:00:00:00:fe' --from 0000000000000001/3
  headgate network trace --packet broadcast --from 10.0.0.1 -o json | jq -r '.hops[].steps[] | select(.end == "delivered").hosts[]'`,
		Args: cobra.NoArgs,
	}
	packet := c.Flags().String("packet", "", "the packet, such as 'tcp 10.0.0.1:1000 10.0.0.2:80'")
	from := c.Flags().String("from", "", "the `HOST` that sends it, or SWITCH/PORT")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		switch {
		case *packet == "":
			return usageError{errors.New("--packet is missing: set it to a packet, such as 'tcp 10.0.0.1:1000 10.0.0.2:80'"), c.CommandPath()}
		case *from == "":
			return usageError{errors.New("--from is missing: set it to a host, such as 10.0.0.1, or to SWITCH/PORT"), c.CommandPath()}
		}
		return nil
	}
	server := query(a, c, func(q request) (api.NetworkTrace, error) {
		return api.Decode[api.NetworkTrace](q.client.GetNetworkTrace(q.ctx, &api.GetNetworkTraceParams{Packet: *packet, From: *from}))
	}, writeTrace)
	completeFlag(c, "from", completeNetwork(server, true))
	completeFlag(c, "packet", oneOf())
	return c
}

// writeTrace writes a line for each hop, and one below it for each step.
func writeTrace(w io.Writer, t api.NetworkTrace) error {
	for _, h := range t.Hops {
		if _, err := fmt.Fprintln(w, h.Text); err != nil {
			return err
		}
		for _, s := range h.Steps {
			if _, err := fmt.Fprintln(w, strings.Repeat("  ", s.Indent)+s.Text); err != nil {
				return err
			}
		}
	}
	if t.Cut != nil {
		_, err := fmt.Fprintln(w, *t.Cut)
		return err
	}
	return nil
}

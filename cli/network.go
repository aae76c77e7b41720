package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit"
)

func networkCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "network",
		Short: "Configure and show the network of switches that a service connects",
		Long: `Network shows what the leader of the controllers knows of the OpenFlow switches that are
connected to it. They connect to the listeners in the configuration of the network, which "network
apply" sets, or to "headgate controller --openflow". A switch has a name if the configuration gives it
one, and else its datapath id, 16 hexadecimal digits. A port is written as its switch, a slash, and its
number: s1/3.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(networkConnectCommand(a), networkDisconnectCommand(a),
		networkApplyCommand(a), networkConfigCommand(a), networkClearCommand(a), networkCertificateCommand(a),
		networkShowCommand(a), networkPathCommand(a), networkTraceCommand(a), networkFlowsCommand(a), networkEventsCommand(a))
	return c
}

func networkPathCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "path FROM TO",
		Short: "Print the path between two hosts or switches of the network",
		Long: `Path prints the switches on the shortest path over the links that are up now, with the ports at
which frames come in and go out. FROM and TO are hosts, by their MAC, address or name, or switches,
by their datapath id or name.`,
		Example: `  headgate network path 10.0.0.1 10.0.0.2
  headgate network path 02:00:00:00:00:01 0000000000000003 -o json`,
		Args: cobra.ExactArgs(2),
	}
	var names switchNames
	server := query(a, c, func(q request) (p api.NetworkPath, err error) {
		p, err = api.Decode[api.NetworkPath](q.client.GetNetworkPath(q.ctx, &api.GetNetworkPathParams{From: q.args[0], To: q.args[1]}))
		if err != nil {
			return p, err
		}
		n, err := api.Decode[api.Network](q.client.GetNetwork(q.ctx))
		names = namesOf(n.Switches)
		return p, err
	}, func(w io.Writer, p api.NetworkPath) error {
		rows := [][]string{{"SWITCH", "IN", "OUT"}}
		for _, h := range p.Hops {
			rows = append(rows, []string{names.of(h.Switch), portNumber(h.InPort), portNumber(h.OutPort)})
		}
		if err := text.Table(w, "", rows); err != nil || p.CapacityBps == nil {
			return err
		}
		_, err := fmt.Fprintf(w, "capacity %v\n", unit.Rate(*p.CapacityBps))
		return err
	})
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 1 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeNetwork(server, true)(c, args, begun)
	}
	return c
}

func portNumber(p *int64) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprint(*p)
}

func networkFlowsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "flows SWITCH",
		Short: "Print the flows that a switch has",
		Long: `Flows asks a switch for its flows, and prints them in the order in which packets pass the tables. SWITCH
is a datapath id, or a name in the configuration of the network.
TABLE and RULE are those of Headgate's pipeline; flows of other programs have none. MATCH and
INSTRUCTIONS are written as ovs-ofctl writes them.`,
		Example: `  headgate network flows 0000000000000001
  headgate network flows 0000000000000001 -o json | jq '.[] | select(.packets > 0)'`,
		Args: cobra.ExactArgs(1),
	}
	server := query(a, c, func(q request) ([]api.SwitchFlow, error) {
		id, err := switchID(q, q.args[0])
		if err != nil {
			return nil, err
		}
		got, err := api.Decode[api.SwitchFlowList](q.client.ListSwitchFlows(q.ctx, id))
		return got.Items, err
	}, func(w io.Writer, flows []api.SwitchFlow) error {
		rows := [][]string{{"TABLE", "PRIORITY", "PACKETS", "BYTES", "MATCH", "INSTRUCTIONS", "RULE"}}
		for _, f := range flows {
			table := strings.TrimSpace(fmt.Sprint(f.Table) + " " + orNone(f.TableName))
			rows = append(rows, []string{table, fmt.Sprint(f.Priority), fmt.Sprint(f.Packets), fmt.Sprint(f.Bytes), f.Match, f.Instructions, orNone(f.Rule)})
		}
		return text.Table(w, "", rows)
	})
	c.ValidArgsFunction = firstArg(completeNetwork(server, false))
	return c
}

// switchID returns the datapath id of a switch that is named by it or by its name.
func switchID(q request, text string) (string, error) {
	if id, err := fabric.ParseDPID(text); err == nil {
		return id.String(), nil
	}
	n, err := api.Decode[api.Network](q.client.GetNetwork(q.ctx))
	if err != nil {
		return "", err
	}
	for _, s := range n.Switches {
		if orNone(s.Name) == text {
			return s.Id, nil
		}
	}
	listed, err := configuredNetwork(q)
	if err != nil {
		return "", err
	}
	for _, s := range listed.Switches {
		if s.Name == text {
			return s.ID.String(), nil
		}
	}
	return "", fmt.Errorf("no switch has the name %s: \"headgate network show switches\" lists them", text)
}

// completeNetwork offers the switches of the network by their ids and names, and with hosts the MACs, addresses and names of hosts.
func completeNetwork(server *string, hosts bool) completion {
	return served(server, func(q request) (found []string, err error) {
		n, err := api.Decode[api.Network](q.client.GetNetwork(q.ctx))
		for _, s := range n.Switches {
			found = append(found, s.Id, orNone(s.Name))
		}
		for _, h := range n.Hosts {
			if hosts {
				found = append(append(found, h.Mac, orNone(h.Name)), h.Addresses...)
			}
		}
		return slices.DeleteFunc(found, func(word string) bool { return word == "" }), err
	})
}

// completeSwitches offers the switches that the configuration of the network lists, by their ids and names.
func completeSwitches(server *string) completion {
	return served(server, func(q request) (found []string, err error) {
		c, err := configuredNetwork(q)
		for _, s := range c.Switches {
			if found = append(found, s.ID.String()); s.Name != "" {
				found = append(found, s.Name)
			}
		}
		return found, err
	})
}

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit"
)

func networkCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "network",
		Short: "Show the network of switches that a service connects",
		Long: `Network shows what the leader of the controllers knows of the OpenFlow switches that are
connected to it, with "headgate controller --openflow". A switch has its datapath id as its name:
16 hexadecimal digits. A port is written as the id of its switch, a slash, and its number.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(networkShowCommand(a), networkPathCommand(a), networkFlowsCommand(a), networkEventsCommand(a))
	return c
}

// networkParts are the parts of a network that "network show" prints alone.
var networkParts = []string{"switches", "links", "hosts", "faults"}

func networkShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show [switches|links|hosts|faults]",
		Short: "Print the switches, links, hosts and faults of the network",
		Long: `Show prints the switches that are connected, the links between them, the hosts that were found, and
the faults, or one of these.

CURRENT is no while a switch is brought to what it should have, and error if it refuses. SOURCE of a
capacity is configured, measured, reported (by the ports) or assumed. LEARNED is how a host was found.`,
		Example: `  headgate network show
  headgate network show links
  headgate network show hosts -o json | jq -r '.[].mac'`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: networkParts,
	}
	query(a, c, func(q request) (any, error) {
		n, err := api.Decode[api.Network](q.client.GetNetwork(q.ctx))
		if err != nil {
			return nil, err
		}
		if n.Listen == nil {
			a.note("the service accepts no switches: start each controller with --openflow ADDRESS")
		}
		switch strings.Join(q.args, "") {
		case "switches":
			return n.Switches, nil
		case "links":
			return n.Links, nil
		case "hosts":
			return n.Hosts, nil
		case "faults":
			return faultsOf(n), nil
		}
		return n, nil
	}, writeNetwork)
	return c
}

// networkFault is a fault of a port, or of a switch.
type networkFault struct {
	Kind    string `json:"kind"`
	Switch  string `json:"switch"`
	Port    int64  `json:"port,omitempty"`
	Message string `json:"message"`
}

// faultsOf returns the faults of ports, and the errors of switches.
func faultsOf(n api.Network) []networkFault {
	all := []networkFault{}
	for _, s := range n.Switches {
		if s.Error != nil {
			all = append(all, networkFault{"error", s.Id, 0, *s.Error})
		}
	}
	for _, f := range n.Faults {
		all = append(all, networkFault{string(f.Kind), f.At.Switch, f.At.Port, f.Message})
	}
	return all
}

// writeNetwork prints a network, or a part of it.
func writeNetwork(w io.Writer, v any) error {
	var rows [][]string
	switch v := v.(type) {
	case api.Network:
		for n, part := range []any{v.Switches, v.Links, v.Hosts, faultsOf(v)} {
			if n > 0 {
				fmt.Fprintln(w)
			}
			if err := writeNetwork(w, part); err != nil {
				return err
			}
		}
		return nil
	case []api.NetworkSwitch:
		rows = append(rows, []string{"SWITCH", "ADDRESS", "SOFTWARE", "PORTS", "LINKS", "CURRENT"})
		for _, s := range v {
			rows = append(rows, switchRow(s))
		}
	case []api.NetworkLink:
		rows = append(rows, []string{"LINK", "", "", "CAPACITY", "SOURCE"})
		reverse := map[api.NetworkLink]bool{}
		for _, l := range v {
			reverse[api.NetworkLink{From: l.To, To: l.From, CapacityBps: l.CapacityBps, CapacitySource: l.CapacitySource}] = true
		}
		for _, l := range v {
			arrow := "->"
			if reverse[l] { // the other direction is alike
				if portText(l.To) < portText(l.From) {
					continue
				}
				arrow = "<->"
			}
			rows = append(rows, []string{portText(l.From), arrow, portText(l.To), unit.Rate(l.CapacityBps).String(), string(l.CapacitySource)})
		}
	case []api.NetworkHost:
		rows = append(rows, []string{"HOST", "VLAN", "ADDRESSES", "AT", "LEARNED"})
		for _, h := range v {
			vlan := "-"
			if h.Vlan != nil {
				vlan = fmt.Sprint(*h.Vlan)
			}
			rows = append(rows, []string{h.Mac, vlan, strings.Join(h.Addresses, " "), portText(h.At), string(h.Learned)})
		}
	case []networkFault:
		rows = append(rows, []string{"FAULT", "AT", "MESSAGE"})
		for _, f := range v {
			at := f.Switch
			if f.Port != 0 {
				at = portText(api.NetworkPortID{Switch: f.Switch, Port: f.Port})
			}
			rows = append(rows, []string{f.Kind, at, f.Message})
		}
	}
	return text.Table(w, "", rows)
}

func switchRow(s api.NetworkSwitch) []string {
	up, links := 0, 0
	for _, p := range s.Ports {
		if p.State == api.PortUp {
			up++
		}
		if p.Use == api.PortToSwitch {
			links++
		}
	}
	current := map[bool]string{true: "yes", false: "no"}[s.Current]
	if s.Error != nil {
		current = "error"
	}
	software := strings.TrimSpace(orEmpty(s.Hardware) + " " + orEmpty(s.Software))
	return []string{s.Id, s.Address, software, fmt.Sprintf("%d of %d up", up, len(s.Ports)), fmt.Sprint(links), current}
}

func portText(p api.NetworkPortID) string { return fmt.Sprintf("%s/%d", p.Switch, p.Port) }

func networkPathCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "path FROM TO",
		Short: "Print the path between two hosts or switches of the network",
		Long: `Path prints the switches on the shortest path over the links that are up now, with the ports at
which frames come in and go out. FROM and TO are hosts, by their MAC, address or name, or switches,
by their datapath id.`,
		Example: `  headgate network path 10.0.0.1 10.0.0.2
  headgate network path 02:00:00:00:00:01 0000000000000003 -o json`,
		Args: cobra.ExactArgs(2),
	}
	server := query(a, c, func(q request) (api.NetworkPath, error) {
		return api.Decode[api.NetworkPath](q.client.GetNetworkPath(q.ctx, &api.GetNetworkPathParams{From: q.args[0], To: q.args[1]}))
	}, func(w io.Writer, p api.NetworkPath) error {
		rows := [][]string{{"SWITCH", "IN", "OUT"}}
		for _, h := range p.Hops {
			rows = append(rows, []string{h.Switch, portNumber(h.InPort), portNumber(h.OutPort)})
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
		Long: `Flows asks a switch for its flows, and prints them in the order in which packets pass the tables.
TABLE and RULE are those of Headgate's pipeline; flows of other programs have none. MATCH and
INSTRUCTIONS are written as ovs-ofctl writes them.`,
		Example: `  headgate network flows 0000000000000001
  headgate network flows 0000000000000001 -o json | jq '.[] | select(.packets > 0)'`,
		Args: cobra.ExactArgs(1),
	}
	server := query(a, c, func(q request) ([]api.SwitchFlow, error) {
		got, err := api.Decode[api.SwitchFlowList](q.client.ListSwitchFlows(q.ctx, q.args[0]))
		return got.Items, err
	}, func(w io.Writer, flows []api.SwitchFlow) error {
		rows := [][]string{{"TABLE", "PRIORITY", "PACKETS", "BYTES", "MATCH", "INSTRUCTIONS", "RULE"}}
		for _, f := range flows {
			table := strings.TrimSpace(fmt.Sprint(f.Table) + " " + orEmpty(f.TableName))
			rows = append(rows, []string{table, fmt.Sprint(f.Priority), fmt.Sprint(f.Packets), fmt.Sprint(f.Bytes), f.Match, f.Instructions, orEmpty(f.Rule)})
		}
		return text.Table(w, "", rows)
	})
	c.ValidArgsFunction = firstArg(completeNetwork(server, false))
	return c
}

func networkEventsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "events",
		Short: "Print what has happened in the network, the oldest first",
		Long: `Events prints the last 1000 events of the network: switches, ports, links and hosts that come and go,
faults, and claims of addresses. The leader of the controllers keeps them in memory, from the time at which it
became the leader.`,
		Example: `  headgate network events
  headgate network events -o json | jq '.[] | select(.kind == "link-removed")'`,
		Args: cobra.NoArgs,
	}
	query(a, c, func(q request) ([]api.NetworkEvent, error) {
		got, err := api.Decode[api.NetworkEventList](q.client.ListNetworkEvents(q.ctx))
		return got.Items, err
	}, func(w io.Writer, events []api.NetworkEvent) error {
		rows := [][]string{{"AT", "KIND", "MESSAGE"}}
		for _, e := range events {
			rows = append(rows, []string{e.At.Local().Format("2006-01-02 15:04:05.000"), e.Kind, e.Message})
		}
		return text.Table(w, "", rows)
	})
	return c
}

// completeNetwork offers the switches of the network, and with hosts the MACs and addresses of hosts.
func completeNetwork(server *string, hosts bool) completion {
	return names(func(*cobra.Command) (found []string, err error) {
		client, err := service(*server)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		n, err := api.Decode[api.Network](client.GetNetwork(ctx))
		for _, s := range n.Switches {
			found = append(found, s.Id)
		}
		for _, h := range n.Hosts {
			if hosts {
				found = append(append(found, h.Mac), h.Addresses...)
			}
		}
		return found, err
	})
}

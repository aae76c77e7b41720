package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/unit/rounded"
)

// networkParts are the parts of a network that "network show" prints alone.
var networkParts = []string{"switches", "ports", "links", "hosts", "relays", "faults"}

func networkShowCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "show [switches|ports|links|hosts|relays|faults]",
		Short: "Print the switches, ports, links, hosts, relay agents and faults of the network",
		Long: `Show prints the switches that are connected, the links between them, the hosts that were found, the
relay agents that have announced themselves, and the faults, or one of these. It prints the ports of
switches alone, with their names.

CURRENT is no while a switch is brought to what it should have, and error if it refuses. SOURCE of a
capacity is configured, measured, reported (by the ports) or assumed. RATE is what a link carries in each
direction, of layer 2, and its part of the capacity; with -o json there are drops and errors too. LEARNED
is how a host was found. USE is what a port has: hosts, a link, a fault, or undecided while that is being
found out. LIMIT is what the network lacks at a switch that has fewer tables, groups or
meters than others. TAKES and CONNECTS are what a relay agent does: it takes connections that the network
redirects to it, and it connects to servers with the client's address. EXITS are the agents to which it has
streams.`,
		Example: `  headgate network show
  headgate network show links
  headgate network show hosts -o json | jq -r '.[].mac'`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: networkParts,
	}
	var names switchNames
	query(a, c, func(q request) (any, error) {
		n, err := api.Decode[api.Network](q.client.GetNetwork(q.ctx))
		if err != nil {
			return nil, err
		}
		part := strings.Join(q.args, "")
		whole := part == "" || part == "switches"
		var c fabric.Config
		if whole || len(n.Listen) == 0 {
			if c, err = configuredNetwork(q); err != nil {
				return nil, err
			}
		}
		switch {
		case len(n.Listen) == 0 && len(c.Routers) > 0:
			a.note("the network has routers alone, which are not found but written: \"headgate network config\" prints them")
		case len(n.Listen) == 0:
			a.note("the service accepts no switches: set the configuration of the network (\"headgate network apply -f FILE\"), or start each controller with --openflow ADDRESS")
		}
		for _, l := range n.Listen {
			if l.Error != nil {
				a.note("the service accepts no switches at %s: %s", l.Address, *l.Error)
			}
		}
		names = namesOf(n.Switches)
		if whole {
			a.noteAbsent(c.Switches, n)
		}
		switch part {
		case "switches":
			return n.Switches, nil
		case "ports":
			return portsOf(n), nil
		case "links":
			return n.Links, nil
		case "hosts":
			return n.Hosts, nil
		case "relays":
			return relaysInNetwork(n), nil
		case "faults":
			return faultsOf(n), nil
		}
		return n, nil
	}, func(w io.Writer, v any) error { return writeNetwork(w, v, names) })
	return c
}

// configuredNetwork returns the configuration of the network, the zero value if there is none or the client may not read it.
func configuredNetwork(q request) (fabric.Config, error) {
	got, err := api.Decode[api.NetworkConfig](getNetworkConfig(q))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return fabric.Config{}, nil
	}
	if err != nil {
		return fabric.Config{}, err
	}
	return config.ParseNetwork("service", got.Text)
}

// noteAbsent names the switches that are listed and that the network does not have.
func (a *app) noteAbsent(listed []fabric.SwitchConfig, n api.Network) {
	var absent []string
	for _, s := range listed {
		if !slices.ContainsFunc(n.Switches, func(has api.NetworkSwitch) bool { return has.Id == s.ID.String() }) {
			absent = append(absent, strings.TrimSpace(s.Name+" "+s.ID.String()))
		}
	}
	if len(absent) > 0 {
		a.note("not connected: %s (\"headgate network events\" names switches that were refused)", strings.Join(absent, ", "))
	}
}

// networkPort is a port of a switch.
type networkPort struct {
	Switch string `json:"switch"`
	api.NetworkPort
}

// portsOf returns the ports of all switches.
func portsOf(n api.Network) []networkPort {
	all := []networkPort{}
	for _, s := range n.Switches {
		for _, p := range s.Ports {
			all = append(all, networkPort{s.Id, p})
		}
	}
	return all
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
func writeNetwork(w io.Writer, v any, names switchNames) error {
	var rows [][]string
	switch v := v.(type) {
	case api.Network:
		parts := []any{v.Switches, v.Links, v.Hosts}
		if v.Relays != nil || v.Redirection != nil {
			parts = append(parts, relaysInNetwork(v))
		}
		for n, part := range append(parts, faultsOf(v)) {
			if n > 0 {
				fmt.Fprintln(w)
			}
			if err := writeNetwork(w, part, names); err != nil {
				return err
			}
		}
		return nil
	case []api.NetworkSwitch:
		if err := text.Table(w, "", switchRows(v)); err != nil {
			return err
		}
		return writeLimits(w, v, names)
	case []api.NetworkLink:
		rows = names.linkRows(v)
	case []networkPort:
		rate := func(bps *int64) string {
			if bps == nil {
				return "-"
			}
			return rounded.Rate(float64(*bps))
		}
		rows = append(rows, []string{"PORT", "NAME", "STATE", "USE", "SPEED", "RECEIVES", "SENDS"})
		for _, p := range v {
			speed := "-"
			if p.SpeedBps != nil {
				speed = unit.Rate(*p.SpeedBps).String()
			}
			at := names.port(api.NetworkPortID{Switch: p.Switch, Port: p.Number})
			rows = append(rows, []string{at, orNone(p.Name), string(p.State), string(p.Use), speed, rate(p.RxBps), rate(p.TxBps)})
		}
	case []api.NetworkHost:
		return text.Table(w, "", names.hostRows(v))
	case networkRelays:
		return writeRelays(w, v, names)
	case []networkFault:
		rows = append(rows, []string{"FAULT", "AT", "MESSAGE"})
		for _, f := range v {
			at := names.of(f.Switch)
			if f.Port != 0 {
				at = names.port(api.NetworkPortID{Switch: f.Switch, Port: f.Port})
			}
			rows = append(rows, []string{f.Kind, at, f.Message})
		}
	}
	return text.Table(w, "", rows)
}

// hostRows returns a row for each host. Names have a column if there are any.
func (n switchNames) hostRows(hosts []api.NetworkHost) [][]string {
	named := slices.ContainsFunc(hosts, func(h api.NetworkHost) bool { return h.Name != nil })
	row := func(mac, name string, others ...string) []string {
		if named {
			return append([]string{mac, name}, others...)
		}
		return append([]string{mac}, others...)
	}
	rows := [][]string{row("HOST", "NAME", "VLAN", "ADDRESSES", "AT", "LEARNED")}
	for _, h := range hosts {
		vlan := "-"
		if h.Vlan != nil {
			vlan = fmt.Sprint(*h.Vlan)
		}
		rows = append(rows, row(h.Mac, orNone(h.Name), vlan, strings.Join(h.Addresses, " "), n.port(h.At), string(h.Learned)))
	}
	return rows
}

// switchRows returns a row for each switch. Names and sites have columns if there are any.
func switchRows(switches []api.NetworkSwitch) [][]string {
	named := slices.ContainsFunc(switches, func(s api.NetworkSwitch) bool { return s.Name != nil })
	placed := slices.ContainsFunc(switches, func(s api.NetworkSwitch) bool { return s.Site != nil })
	row := func(id, name, site string, others ...string) []string {
		cells := []string{id}
		if named {
			cells = append(cells, name)
		}
		if placed {
			cells = append(cells, site)
		}
		return append(cells, others...)
	}
	rows := [][]string{row("SWITCH", "NAME", "SITE", "ADDRESS", "SOFTWARE", "PORTS", "LINKS", "CURRENT")}
	for _, s := range switches {
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
		software := strings.TrimSpace(orNone(s.Hardware) + " " + orNone(s.Software))
		rows = append(rows, row(s.Id, orNone(s.Name), orNone(s.Site), s.Address, software, fmt.Sprintf("%d of %d up", up, len(s.Ports)), fmt.Sprint(links), current))
	}
	return rows
}

// writeLimits prints what the network lacks at switches, if it lacks anything.
func writeLimits(w io.Writer, all []api.NetworkSwitch, names switchNames) error {
	rows := [][]string{{"SWITCH", "LIMIT"}}
	for _, s := range all {
		for _, limit := range s.Limits {
			rows = append(rows, []string{names.of(s.Id), limit})
		}
	}
	if len(rows) == 1 {
		return nil
	}
	fmt.Fprintln(w)
	return text.Table(w, "", rows)
}

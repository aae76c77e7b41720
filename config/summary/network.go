package summary

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"strings"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/text"
)

// Network describes a network of switches and routers. Ports are as the file has them: s1/3, r1/eth0.
type Network struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Name string `json:"name"`
	// UnknownSwitches is accept or refuse.
	UnknownSwitches string            `json:"unknown_switches"`
	Listen          []NetworkListener `json:"listen"`
	Sites           []NetworkSite     `json:"sites,omitempty"`
	Switches        []NetworkSwitch   `json:"switches,omitempty"`
	Routers         []NetworkRouter   `json:"routers,omitempty"`
	Links           []NetworkLink     `json:"links,omitempty"`
	Hosts           []NetworkHost     `json:"hosts,omitempty"`
	Trust           []string          `json:"trust,omitempty"`
	HostsPerPort    int               `json:"hosts_per_port"`
}

// NetworkListener is an address at which switches connect.
type NetworkListener struct {
	Address netip.AddrPort `json:"address"`
	TLS     bool           `json:"tls"`
}

// NetworkSite is a site.
type NetworkSite struct {
	Name   string `json:"name"`
	Parent string `json:"parent,omitempty"`
}

// NetworkSwitch is a switch that may connect.
type NetworkSwitch struct {
	ID        string   `json:"id"`
	Name      string   `json:"name,omitempty"`
	Site      string   `json:"site,omitempty"`
	HostPorts []string `json:"host_ports,omitempty"`
	LinkPorts []string `json:"link_ports,omitempty"`
}

// NetworkRouter is a Linux router.
type NetworkRouter struct {
	Name string `json:"name"`
	// Host is the name of its agent.
	Host string `json:"host"`
	Site string `json:"site,omitempty"`
}

// NetworkLink is a cable.
type NetworkLink struct {
	Ends [2]string `json:"ends"`
	// Capacity is a rate from the first end to the second, and Back one the other way. Both are empty if none is written.
	Capacity string `json:"capacity,omitempty"`
	Back     string `json:"back,omitempty"`
	Cost     uint16 `json:"cost"`
	// Reservable is how much of the capacity can be reserved, in percent.
	Reservable uint16 `json:"reservable_percent,omitempty"`
}

// NetworkHost is a configured host.
type NetworkHost struct {
	Name      string       `json:"name,omitempty"`
	MAC       string       `json:"mac"`
	VLAN      uint16       `json:"vlan,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	At        string       `json:"at"`
	// Capacity is the rate of the line from a router, empty at a switch.
	Capacity string `json:"capacity,omitempty"`
}

func networks(set config.Set) (out []Network) {
	for _, c := range set.Networks {
		n := Network{File: c.File, Line: c.Line, Name: c.Name, UnknownSwitches: "refuse", Listen: []NetworkListener{}, HostsPerPort: c.HostsPerPort}
		if c.AcceptUnknown {
			n.UnknownSwitches = "accept"
		}
		for _, l := range c.Listen {
			n.Listen = append(n.Listen, NetworkListener{l.Address, l.TLS})
		}
		for _, s := range c.Sites {
			n.Sites = append(n.Sites, NetworkSite{s.Name, s.Parent})
		}
		for _, s := range c.Switches {
			n.Switches = append(n.Switches, NetworkSwitch{s.ID.String(), s.Name, s.Site, config.PortRanges(s.HostPorts), config.PortRanges(s.LinkPorts)})
		}
		for _, r := range c.Routers {
			n.Routers = append(n.Routers, NetworkRouter{r.Name, r.Host, r.Site})
		}
		for _, l := range c.Links {
			link := NetworkLink{Ends: [2]string{c.PortLabel(l.Ends[0]), c.PortLabel(l.Ends[1])}, Cost: l.Cost, Reservable: l.Reservable}
			if l.Capacity > 0 {
				link.Capacity = l.Capacity.String()
				link.Back = cmp.Or(l.Back, l.Capacity).String()
			}
			n.Links = append(n.Links, link)
		}
		for _, h := range c.Hosts {
			host := NetworkHost{Name: h.Name, MAC: h.MAC.String(), VLAN: h.VLAN, Addresses: h.Addrs, At: c.PortLabel(h.At)}
			if h.Capacity > 0 {
				host.Capacity = h.Capacity.String()
			}
			n.Hosts = append(n.Hosts, host)
		}
		for _, p := range c.Trust {
			n.Trust = append(n.Trust, c.PortLabel(p))
		}
		out = append(out, n)
	}
	return out
}

// routed reports that the network has routers alone.
func (n Network) routed() bool {
	return len(n.Routers) > 0 && len(n.Switches) == 0 && n.UnknownSwitches == "refuse"
}

func (n Network) write(w io.Writer) error {
	unknown := map[string]string{"refuse": "switches that are not listed are refused", "accept": "switches that are not listed are accepted"}[n.UnknownSwitches]
	if n.routed() {
		unknown = "of routers"
	}
	fmt.Fprintf(w, "network %s, %s (%s:%d)\n", n.Name, unknown, n.File, n.Line)
	for _, l := range n.Listen {
		how := "with TLS"
		if !l.TLS {
			how = "without encryption"
		}
		fmt.Fprintf(w, "  listens for switches at %s %s\n", l.Address, how)
	}
	for _, s := range n.Sites {
		in := ""
		if s.Parent != "" {
			in = " in " + s.Parent
		}
		fmt.Fprintf(w, "  site %s%s\n", s.Name, in)
	}
	if err := n.writeTables(w); err != nil {
		return err
	}
	for _, p := range n.Trust {
		fmt.Fprintf(w, "  trusted port %s: any number of hosts\n", p)
	}
	if n.routed() {
		return nil
	}
	_, err := fmt.Fprintf(w, "  hosts at each other port: at most %d\n", n.HostsPerPort)
	return err
}

func (n Network) writeTables(w io.Writer) error {
	rows := [][]string{{"SWITCH", "ID", "SITE", "HOST PORTS", "LINK PORTS"}}
	for _, s := range n.Switches {
		rows = append(rows, []string{s.Name, s.ID, s.Site, strings.Join(s.HostPorts, ", "), strings.Join(s.LinkPorts, ", ")})
	}
	routers := [][]string{{"ROUTER", "AGENT", "SITE"}}
	for _, r := range n.Routers {
		routers = append(routers, []string{r.Name, r.Host, r.Site})
	}
	links := [][]string{{"LINK", "", "CAPACITY", "BACK", "COST", "RESERVABLE"}}
	for _, l := range n.Links {
		links = append(links, []string{l.Ends[0], l.Ends[1], cmp.Or(l.Capacity, "not set"), cmp.Or(l.Back, "not set"), fmt.Sprint(l.Cost), fmt.Sprintf("%d%%", cmp.Or(l.Reservable, 100))})
	}
	// Lines have capacities at routers alone.
	line := func(row []string, capacity string) []string {
		if len(n.Routers) > 0 {
			row = append(row, capacity)
		}
		return row
	}
	hosts := [][]string{line([]string{"HOST", "MAC", "VLAN", "PORT", "ADDRESSES"}, "CAPACITY")}
	for _, h := range n.Hosts {
		vlan, addresses := "", make([]string, len(h.Addresses))
		if h.VLAN > 0 {
			vlan = fmt.Sprint(h.VLAN)
		}
		for i, a := range h.Addresses {
			addresses[i] = a.String()
		}
		hosts = append(hosts, line([]string{h.Name, h.MAC, vlan, h.At, strings.Join(addresses, ", ")}, h.Capacity))
	}
	for _, table := range [][][]string{rows, routers, links, hosts} {
		if len(table) == 1 {
			continue
		}
		if err := text.Table(w, "    ", table); err != nil {
			return err
		}
	}
	return nil
}

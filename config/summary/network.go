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

// Network describes a network of switches. Ports are as the file has them: s1/3.
type Network struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Name string `json:"name"`
	// UnknownSwitches is accept or refuse.
	UnknownSwitches string            `json:"unknown_switches"`
	Listen          []NetworkListener `json:"listen"`
	Sites           []NetworkSite     `json:"sites,omitempty"`
	Switches        []NetworkSwitch   `json:"switches,omitempty"`
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

// NetworkLink is a cable.
type NetworkLink struct {
	Ends [2]string `json:"ends"`
	// Capacity is a rate from the first end to the second, and Back one the other way. Both are empty if none is written.
	Capacity string `json:"capacity,omitempty"`
	Back     string `json:"back,omitempty"`
	Cost     uint16 `json:"cost"`
}

// NetworkHost is a configured host.
type NetworkHost struct {
	Name      string       `json:"name,omitempty"`
	MAC       string       `json:"mac"`
	VLAN      uint16       `json:"vlan,omitempty"`
	Addresses []netip.Addr `json:"addresses,omitempty"`
	At        string       `json:"at"`
}

func networks(set config.Set) (out []Network) {
	for _, c := range set.Networks {
		n := Network{File: c.File, Line: c.Line, Name: c.Name, UnknownSwitches: "refuse", HostsPerPort: c.HostsPerPort}
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
		for _, l := range c.Links {
			link := NetworkLink{Ends: [2]string{c.PortLabel(l.Ends[0]), c.PortLabel(l.Ends[1])}, Cost: l.Cost}
			if l.Capacity > 0 {
				link.Capacity = l.Capacity.String()
				link.Back = cmp.Or(l.Back, l.Capacity).String()
			}
			n.Links = append(n.Links, link)
		}
		for _, h := range c.Hosts {
			n.Hosts = append(n.Hosts, NetworkHost{h.Name, h.MAC.String(), h.VLAN, h.Addrs, c.PortLabel(h.At)})
		}
		for _, p := range c.Trust {
			n.Trust = append(n.Trust, c.PortLabel(p))
		}
		out = append(out, n)
	}
	return out
}

func (n Network) write(w io.Writer) error {
	unknown := map[string]string{"refuse": "switches that are not listed are refused", "accept": "switches that are not listed are accepted"}[n.UnknownSwitches]
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
	_, err := fmt.Fprintf(w, "  hosts at each other port: at most %d\n", n.HostsPerPort)
	return err
}

func (n Network) writeTables(w io.Writer) error {
	rows := [][]string{{"SWITCH", "ID", "SITE", "HOST PORTS", "LINK PORTS"}}
	for _, s := range n.Switches {
		rows = append(rows, []string{s.Name, s.ID, s.Site, strings.Join(s.HostPorts, ", "), strings.Join(s.LinkPorts, ", ")})
	}
	links := [][]string{{"LINK", "", "CAPACITY", "BACK", "COST"}}
	for _, l := range n.Links {
		links = append(links, []string{l.Ends[0], l.Ends[1], cmp.Or(l.Capacity, "not set"), cmp.Or(l.Back, "not set"), fmt.Sprint(l.Cost)})
	}
	hosts := [][]string{{"HOST", "MAC", "VLAN", "PORT", "ADDRESSES"}}
	for _, h := range n.Hosts {
		vlan, addresses := "", make([]string, len(h.Addresses))
		if h.VLAN > 0 {
			vlan = fmt.Sprint(h.VLAN)
		}
		for i, a := range h.Addresses {
			addresses[i] = a.String()
		}
		hosts = append(hosts, []string{h.Name, h.MAC, vlan, h.At, strings.Join(addresses, ", ")})
	}
	for _, table := range [][][]string{rows, links, hosts} {
		if len(table) == 1 {
			continue
		}
		if err := text.Table(w, "    ", table); err != nil {
			return err
		}
	}
	return nil
}

package config

import (
	"fmt"
	"net/netip"
	"strings"

	"headgate.dev/headgate/fabric"
)

// FormatNetwork formats a network as a document that parses to the same network, with defaults filled in.
func FormatNetwork(c fabric.Config) []byte {
	p := &printer{}
	p.line("kind: Network")
	p.line("name: %s", quote(c.Name))
	items(p, "sites", c.Sites, func(s fabric.Site) []string {
		return append([]string{"name: " + quote(s.Name)}, ifSet("parent", s.Parent)...)
	})
	items(p, "switches", c.Switches, func(s fabric.SwitchConfig) []string {
		out := []string{"id: " + quote(s.ID.Colons())}
		out = append(append(out, ifSet("name", s.Name)...), ifSet("site", s.Site)...)
		return append(append(out, portList("host_ports", s.HostPorts)...), portList("link_ports", s.LinkPorts)...)
	})
	items(p, "routers", c.Routers, func(r fabric.RouterConfig) []string {
		return append([]string{"name: " + quote(r.Name), "host: " + quote(r.Host)}, ifSet("site", r.Site)...)
	})
	if c.AcceptUnknown {
		p.line("unknown_switches: accept")
	}
	items(p, "links", c.Links, func(l fabric.LinkConfig) []string {
		out := []string{fmt.Sprintf("ends: [%s, %s]", quote(c.PortLabel(l.Ends[0])), quote(c.PortLabel(l.Ends[1])))}
		if l.Capacity > 0 {
			out = append(out, "capacity: "+l.Capacity.String())
		}
		if l.Back > 0 {
			out = append(out, "back: "+l.Back.String())
		}
		if l.Reservable > 0 {
			out = append(out, fmt.Sprintf("reservable: %d%%", l.Reservable))
		}
		return append(out, fmt.Sprintf("cost: %d", l.Cost))
	})
	items(p, "hosts", c.Hosts, func(h fabric.HostConfig) []string {
		out := append(ifSet("name", h.Name), "mac: "+quote(h.MAC.String()))
		if h.VLAN > 0 {
			out = append(out, fmt.Sprintf("vlan: %d", h.VLAN))
		}
		if len(h.Addrs) > 0 {
			out = append(out, "addresses: ["+strings.Join(texts(h.Addrs, func(a netip.Addr) string { return quote(a.String()) }), ", ")+"]")
		}
		out = append(out, "at: "+quote(c.PortLabel(h.At)))
		if h.Capacity > 0 {
			out = append(out, "capacity: "+h.Capacity.String())
		}
		return out
	})
	relays(p, c.Relays)
	items(p, "listen", c.Listen, func(l fabric.Listener) []string {
		return []string{"address: " + quote(l.Address.String()), fmt.Sprintf("tls: %v", l.TLS)}
	})
	if len(c.Trust) > 0 {
		p.line("trust: [%s]", strings.Join(texts(c.Trust, func(r fabric.PortRef) string { return quote(c.PortLabel(r)) }), ", "))
	}
	if c.ApplyMeasured > 0 {
		p.line("apply_measured: %d%%", c.ApplyMeasured)
	}
	p.line("hosts_per_port: %d", c.HostsPerPort)
	return []byte(p.String())
}

// items prints a list of mappings, each on a line.
func items[T any](p *printer, key string, all []T, fields func(T) []string) {
	if len(all) == 0 {
		return
	}
	p.line("%s:", key)
	for _, one := range all {
		p.line("  - {%s}", strings.Join(fields(one), ", "))
	}
}

func ifSet(key, value string) []string {
	if value == "" {
		return nil
	}
	return []string{key + ": " + quote(value)}
}

func portList(key string, ports []fabric.PortName) []string {
	if len(ports) == 0 {
		return nil
	}
	return []string{key + ": [" + strings.Join(texts(PortRanges(ports), quote), ", ") + "]"}
}

// PortRanges prints ports as host_ports and link_ports have them: three consecutive numbers or more are a range, 1-46.
func PortRanges(ports []fabric.PortName) (out []string) {
	for i := 0; i < len(ports); {
		last := i
		for last+1 < len(ports) && ports[last].Name == "" && ports[last+1].Name == "" && ports[last+1].No == ports[last].No+1 {
			last++
		}
		text := ports[i].String()
		if last > i+1 {
			text += "-" + ports[last].String()
		} else {
			last = i
		}
		out, i = append(out, text), last+1
	}
	return out
}

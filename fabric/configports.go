package fabric

import (
	"fmt"
	"slices"
	"strings"
)

// Bind replaces names of ports by the numbers that connected switches report, and returns mistakes that only then
// show: ports that do not exist, and ports that are written twice, by number and by name. Ports of switches that are
// not in ports stay as they are. c is not changed, and has no mistakes of Check.
func (c Config) Bind(ports map[DPID][]Port) (Config, []*Invalid) {
	c = c.clone()
	var missing checker
	c.eachPort(func(field string, id DPID, p *PortName) {
		reported, connected := ports[id]
		if !connected {
			return
		}
		i := slices.IndexFunc(reported, func(r Port) bool {
			return p.Name != "" && r.Name == p.Name || p.Name == "" && r.No == p.No
		})
		if i < 0 {
			missing.add(field, "port %s does not exist: the switch has %s; correct the port, or add it to the switch", c.PortLabel(PortRef{id, *p}), list(reported))
			return
		}
		*p = PortName{No: reported[i].No}
	})
	return c, append(missing.errs, c.Check()...)
}

// clone copies what eachPort can change.
func (c Config) clone() Config {
	c.Switches, c.Links, c.Hosts, c.Trust = slices.Clone(c.Switches), slices.Clone(c.Links), slices.Clone(c.Hosts), slices.Clone(c.Trust)
	for i := range c.Switches {
		s := &c.Switches[i]
		s.HostPorts, s.LinkPorts = slices.Clone(s.HostPorts), slices.Clone(s.LinkPorts)
	}
	return c
}

// eachPort calls f for each port that is written, with its field and its switch.
func (c Config) eachPort(f func(field string, id DPID, p *PortName)) {
	for i := range c.Switches {
		s := &c.Switches[i]
		for j := range s.HostPorts {
			f(fmt.Sprintf("switches[%d].host_ports", i), s.ID, &s.HostPorts[j])
		}
		for j := range s.LinkPorts {
			f(fmt.Sprintf("switches[%d].link_ports", i), s.ID, &s.LinkPorts[j])
		}
	}
	ref := func(field string, p *PortRef) { f(field, p.Switch, &p.Port) }
	for i := range c.Links {
		for j := range c.Links[i].Ends {
			ref(fmt.Sprintf("links[%d].ends[%d]", i, j), &c.Links[i].Ends[j])
		}
	}
	for i := range c.Trust {
		ref(fmt.Sprintf("trust[%d]", i), &c.Trust[i])
	}
	for i := range c.Hosts {
		ref(fmt.Sprintf("hosts[%d].at", i), &c.Hosts[i].At)
	}
}

// list prints up to 8 ports.
func list(ports []Port) string {
	var all []string
	for _, p := range ports {
		if len(all) == 8 {
			all = append(all, fmt.Sprintf("%d more", len(ports)-8))
			break
		}
		text := p.No.String()
		if p.Name != "" && p.Name != text {
			text += " (" + p.Name + ")"
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "no ports"
	}
	return strings.Join(all, ", ")
}

package fabric

import (
	"fmt"
	"slices"
	"strings"
)

// Bind replaces names of ports by the numbers that connected switches report, and returns mistakes that only then show:
// ports that are written twice, by number and by name. Ports of switches that are not in ports stay as they are, and those that
// their switches do not have (MissingPort). c is not changed, and has no mistakes of Check.
func (c Config) Bind(ports map[DPID][]Port) (Config, []*Invalid) {
	c = c.bound(ports)
	return c, c.Check()
}

// bound is Bind without checks.
func (c Config) bound(ports map[DPID][]Port) Config {
	c = c.clone()
	c.eachPort(func(_ string, id DPID, p *PortName) {
		if found, ok := p.in(ports[id]); ok {
			*p = PortName{No: found.No}
		}
	})
	return c
}

// in returns the port of a switch that has the name, or the number if it has none.
func (p PortName) in(reported []Port) (Port, bool) {
	i := slices.IndexFunc(reported, func(r Port) bool {
		return p.Name != "" && r.Name == p.Name || p.Name == "" && r.No == p.No
	})
	if i < 0 {
		return Port{}, false
	}
	return reported[i], true
}

// WrittenPort is a port that a configuration names, and the field that does.
type WrittenPort struct {
	Field string
	PortRef
}

// WrittenPorts returns all ports that the configuration names, by switch.
func (c Config) WrittenPorts() map[DPID][]WrittenPort {
	all := map[DPID][]WrittenPort{}
	c.eachPort(func(field string, id DPID, p *PortName) {
		all[id] = append(all[id], WrittenPort{field, PortRef{id, *p}})
	})
	return all
}

// MissingPort returns the mistake that a written port is not one of those that its switch has reported, nil if it is.
func (c Config) MissingPort(w WrittenPort, reported []Port) *Invalid {
	if _, ok := w.Port.in(reported); ok {
		return nil
	}
	var k checker
	k.add(w.Field, "port %s does not exist: the switch has %s; correct the port, or add it to the switch", c.PortLabel(w.PortRef), list(reported))
	return k.errs[0]
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

package fabric

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"headgate.dev/headgate/unit"
)

// Invalid is one mistake in the parts of a network.
type Invalid struct {
	// Field is where the mistake is, as a path in Parts: links[3].capacity.
	Field string
	// Problem names the object, the problem and the remedy.
	Problem string
}

func (e *Invalid) Error() string { return e.Problem }

// checker collects mistakes.
type checker struct {
	errs     []*Invalid
	switches map[DPID]string // label
	ports    map[PortID]bool
	links    map[PortID]LinkID // the link that leaves the port, or the reverse of the one that arrives
}

func (c *checker) add(field, format string, args ...any) {
	c.errs = append(c.errs, &Invalid{field, fmt.Sprintf(format, args...)})
}

// check returns all mistakes of the parts, nil if there are none.
func check(p Parts) error {
	c := &checker{switches: map[DPID]string{}, ports: map[PortID]bool{}, links: map[PortID]LinkID{}}
	sites := c.sites(p.Sites)
	for i, s := range p.Switches {
		c.sw(fmt.Sprintf("switches[%d]", i), s, sites)
	}
	c.names(p.Switches)
	for i, l := range p.Links {
		c.link(fmt.Sprintf("links[%d]", i), l)
	}
	c.usedTwice(p.Links)
	c.hosts(p.Hosts, func(field, object string, i int) { c.hostPort(field, object, p.Hosts[i].At) })
	var all []error
	for _, e := range c.errs {
		all = append(all, e)
	}
	return errors.Join(all...)
}

// sites checks sites and returns their parents.
func (c *checker) sites(sites []Site) map[string]string {
	parents := map[string]string{}
	for i, s := range sites {
		field := fmt.Sprintf("sites[%d].name", i)
		switch _, twice := parents[s.Name]; {
		case s.Name == "":
			c.add(field, "site %d has no name: add one", i+1)
		case twice:
			c.add(field, "site %s is listed twice: remove one, or rename it", s.Name)
		default:
			parents[s.Name] = s.Parent
		}
	}
	walked := map[string]bool{}
	for i, s := range sites {
		if _, ok := parents[s.Parent]; !ok && s.Parent != "" {
			c.add(fmt.Sprintf("sites[%d].parent", i), "site %s is in site %s, which does not exist: add it to sites, or correct the name", s.Name, s.Parent)
		}
		// The way up ends without a parent, on a way that was walked before, or on itself.
		var way []string
		at := s.Name
		for ; at != "" && !walked[at]; at = parents[at] {
			walked[at] = true
			way = append(way, at)
		}
		if k := slices.Index(way, at); k >= 0 {
			first := slices.IndexFunc(sites, func(s Site) bool { return s.Name == at })
			c.add(fmt.Sprintf("sites[%d].parent", first), "sites form a loop: %s in %s: remove the parent of one of them", strings.Join(way[k:], " in "), at)
		}
	}
	return parents
}

func (c *checker) sw(field string, s Switch, sites map[string]string) {
	label := cmp.Or(s.Name, s.ID.String())
	if s.ID == 0 {
		c.add(field+".id", "switch %s has no datapath id: write the one that ovs-vsctl get bridge NAME datapath_id prints", label)
	}
	if other, ok := c.switches[s.ID]; ok {
		c.add(field+".id", "switches %s and %s have the same datapath id %s: give one of them another id", other, label, s.ID)
		return
	}
	c.switches[s.ID] = label
	if _, ok := sites[s.Site]; !ok && s.Site != "" {
		c.add(field+".site", "switch %s is in site %s, which does not exist: add it to sites, or correct the name", label, s.Site)
	}
	names := map[string]PortNo{}
	for i, p := range s.Ports {
		field := fmt.Sprintf("%s.ports[%d]", field, i)
		id := PortID{s.ID, p.No}
		if !p.No.valid() {
			c.add(field+".no", "switch %s has a port with number %d: write 1 to %d, or %d for LOCAL", label, uint32(p.No), uint32(MaxPort), uint32(Local))
		}
		if c.ports[id] {
			c.add(field+".no", "switch %s has port %s twice: remove one", label, p.No)
		}
		c.ports[id] = true
		if other, ok := names[p.Name]; ok && p.Name != "" {
			c.add(field+".name", "ports %s and %s of switch %s have the same name %s: rename one", other, p.No, label, p.Name)
		}
		names[p.Name] = p.No
	}
}

func (c *checker) names(switches []Switch) {
	named := map[string]DPID{}
	for i, s := range switches {
		if other, ok := named[s.Name]; ok && s.Name != "" && other != s.ID {
			c.add(fmt.Sprintf("switches[%d].name", i), "switches %s and %s have the same name %s: rename one", other, s.ID, s.Name)
		}
		named[s.Name] = s.ID
	}
}

// label prints a port with the switch's name.
func (c *checker) label(p PortID) string {
	return cmp.Or(c.switches[p.Switch], p.Switch.String()) + "/" + p.Port.String()
}

// port checks that a port exists.
func (c *checker) port(field, object string, p PortID) {
	switch label, ok := c.switches[p.Switch]; {
	case !ok:
		c.add(field, "%s: switch %s does not exist: add it to switches, or correct the id", object, p.Switch)
	case !c.ports[p]:
		c.add(field, "%s: switch %s has no port %s: correct the number, or add the port to the switch", object, label, p.Port)
	}
}

func (c *checker) link(field string, l Link) {
	object := "link " + c.label(l.From) + " -> " + c.label(l.To)
	c.port(field+".from", object, l.From)
	c.port(field+".to", object, l.To)
	if l.From.Switch == l.To.Switch {
		c.add(field+".to", "%s begins and ends at one switch: connect two switches, or remove the link", object)
	}
	if l.Capacity == 0 {
		c.add(field+".capacity", "%s has a capacity of 0: write its rate, for example 1Gbit, or remove the link", object)
	}
	if l.Capacity > unit.MaxRate {
		c.add(field+".capacity", "%s has a capacity of %v: write at most %v", object, l.Capacity, unit.MaxRate)
	}
	if l.Cost == 0 {
		c.add(field+".cost", "%s has a cost of 0: write 1 to 65535", object)
	}
	if l.Reservable > MaxReservable {
		c.add(field+".reservable", "%d %% of the capacity of %s cannot be reserved: write at most %d", l.Reservable, object, MaxReservable)
	}
}

// usedTwice finds ports of more than one cable. The two directions of a cable use the same two ports.
func (c *checker) usedTwice(links []Link) {
	seen := map[LinkID]bool{}
	for i, l := range links {
		field := fmt.Sprintf("links[%d]", i)
		if seen[l.LinkID] {
			c.add(field, "link %s -> %s is listed twice: remove one", c.label(l.From), c.label(l.To))
			continue
		}
		seen[l.LinkID] = true
		for _, end := range []LinkID{l.LinkID, l.Reverse()} {
			if other, ok := c.links[end.From]; ok && other != end {
				c.add(field, "port %s has links to %s and to %s: a port has one cable; remove one of the links", c.label(end.From), c.label(other.To), c.label(end.To))
				continue
			}
			c.links[end.From] = end
		}
	}
}

// hosts checks hosts. at checks the port of a host, by its index.
func (c *checker) hosts(hosts []Host, at func(field, object string, i int)) {
	seen := map[HostID]bool{}
	owner := map[vlanAddr]HostID{}
	for i, h := range hosts {
		field := fmt.Sprintf("hosts[%d]", i)
		object := "host " + h.HostID.String()
		if h.Name != "" {
			object = "host " + h.Name + " (" + h.HostID.String() + ")"
		}
		if h.MAC == (MAC{}) || h.MAC.Group() {
			c.add(field+".mac", "%s has no address of an interface: the MAC must not be 0, and its first octet must be even", object)
		}
		if h.VLAN > maxVLAN {
			c.add(field+".vlan", "%s is in VLAN %d: write 1 to %d, or 0 for untagged frames", object, h.VLAN, maxVLAN)
		}
		if seen[h.HostID] {
			c.add(field+".mac", "%s is listed twice: remove one", object)
		}
		seen[h.HostID] = true
		at(field+".at", object, i)
		for _, a := range h.Addrs {
			if !hostAddr(a) {
				c.add(field+".addresses", "%s has the address %s, which no host can have: correct or remove it", object, a)
			}
			key := vlanAddr{h.VLAN, a}
			switch other, ok := owner[key]; {
			case ok && other == h.HostID:
				c.add(field+".addresses", "%s has the address %s twice: remove one", object, a)
			case ok:
				c.add(field+".addresses", "hosts %s and %s have the same address %s: remove it from one", other, h.HostID, a)
			}
			owner[key] = h.HostID
		}
	}
}

func (c *checker) hostPort(field, object string, at PortID) {
	c.port(field, object, at)
	if l, ok := c.links[at]; ok {
		c.add(field, "%s is at port %s, which has a link to %s: a port with a link has no hosts; correct the port", object, c.label(at), c.label(l.To))
	}
}

// maxVLAN is the highest VLAN id of a frame; 4095 is reserved (IEEE 802.1Q, table 9-2).
const maxVLAN = 4094

// hostAddr reports whether a host can send from an address.
func hostAddr(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6() && a.Zone() == "" &&
		a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

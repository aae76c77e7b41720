package fabric

import (
	"fmt"
	"net/netip"
	"strings"

	"headgate.dev/headgate/unit"
)

// Check returns all mistakes, nil if there are none. Field of each is a path of keys of the document that config
// parses, such as links[3].ends[1].
func (c Config) Check() []*Invalid {
	k := &configChecker{checker{switches: map[DPID]string{}, ports: map[PortID]bool{}}, map[PortRef]*portUse{}, map[PortID]string{}}
	if c.Name == "" {
		k.add("name", "the network has no name: write for example name: campus")
	}
	if !c.HasSwitches() && len(c.Routers) == 0 {
		k.add("switches", "no switch may connect, and there is no router: list switches or routers, or write unknown_switches: accept")
	}
	sites := k.sites(c.Sites)
	switches := make([]Switch, len(c.Switches))
	for i, s := range c.Switches {
		switches[i] = Switch{ID: s.ID, Name: s.Name, Site: s.Site}
		k.sw(fmt.Sprintf("switches[%d]", i), switches[i], sites)
		if s.ID.IsRouter() {
			k.add(fmt.Sprintf("switches[%d].id", i), "the datapath id %s is one of those that stand for routers: give the switch one that does not begin with %04x", s.ID, uint64(routers>>48))
		}
	}
	k.names(switches)
	k.listedRouters(c, sites)
	for i, s := range c.Switches {
		k.listed(fmt.Sprintf("switches[%d]", i), s)
	}
	for i, l := range c.Links {
		k.link(fmt.Sprintf("links[%d]", i), l)
	}
	for i, p := range c.Trust {
		k.trusted(fmt.Sprintf("trust[%d]", i), p)
	}
	hosts := make([]Host, len(c.Hosts))
	for i, h := range c.Hosts {
		hosts[i], _ = h.Host()
	}
	k.hosts(hosts, func(field, object string, i int) { k.hostAt(field, object, c.Hosts[i]) })
	if c.HasSwitches() || len(c.Listen) > 0 {
		k.listen(c.Listen)
	}
	k.relays(c.Relays)
	if n := c.HostsPerPort; n < 1 || n > MaxHostsPerPort {
		k.add("hosts_per_port", "a port cannot have %d hosts: write 1 to %d, or list the port in trust for any number", n, MaxHostsPerPort)
	}
	return k.errs
}

// configChecker is a checker of ports that may be written by name. Its label and link are for these.
type configChecker struct {
	checker
	uses       map[PortRef]*portUse
	interfaces map[PortID]string // of routers
}

// portUse is what a port was written for so far.
type portUse struct {
	host, link, trust bool
	// cable is the link that ends at the port, and peer its other end.
	cable bool
	peer  PortRef
	// line is the capacity that was written of hosts at an interface of a router.
	line unit.Rate
}

func (k *configChecker) use(p PortRef) *portUse {
	if k.uses[p] == nil {
		k.uses[p] = &portUse{}
	}
	return k.uses[p]
}

func (k *configChecker) label(p PortRef) string {
	return SwitchConfig{ID: p.Switch, Name: k.switches[p.Switch]}.Label() + "/" + p.Port.String()
}

// ref checks that a port can exist.
func (k *configChecker) ref(field, object string, p PortRef) {
	if p.Switch.IsRouter() {
		k.routerPort(field, object, p)
		return
	}
	if _, ok := k.switches[p.Switch]; !ok {
		k.add(field, "%s: switch %s does not exist: add it to switches, or correct the id", object, p.Switch)
	}
	if !p.Port.valid() {
		k.add(field, "%s: %s is not a port: write its number, or the name that the switch reports", object, p.Port)
	}
}

// listed checks the ports that are listed at a switch.
func (k *configChecker) listed(field string, s SwitchConfig) {
	for _, port := range s.HostPorts {
		p := PortRef{s.ID, port}
		k.ref(field+".host_ports", "host port "+k.label(p), p)
		u := k.use(p)
		if u.host {
			k.add(field+".host_ports", "port %s is listed twice: remove one", k.label(p))
		}
		u.host = true
	}
	for _, port := range s.LinkPorts {
		p := PortRef{s.ID, port}
		k.ref(field+".link_ports", "link port "+k.label(p), p)
		u := k.use(p)
		if u.link {
			k.add(field+".link_ports", "port %s is listed twice: remove one", k.label(p))
		}
		if u.host {
			k.add(field+".link_ports", "port %s is in host_ports too: a port has hosts or a link; remove it from one of them", k.label(p))
		}
		u.link = true
	}
}

func (k *configChecker) link(field string, l LinkConfig) {
	a, b := l.Ends[0], l.Ends[1]
	object := "link " + k.label(a) + " - " + k.label(b)
	switch u := k.use(a); {
	case a.Switch == b.Switch && a.Switch.IsRouter():
		k.add(field+".ends[1]", "%s begins and ends at one router: write two routers, or remove the link", object)
	case a.Switch == b.Switch:
		k.add(field+".ends[1]", "%s begins and ends at one switch: connect two switches, or remove the link", object)
	case u.cable && u.peer == b:
		k.add(field, "%s is listed twice: remove one", object)
	default:
		k.end(field+".ends[0]", object, a, b)
		k.end(field+".ends[1]", object, b, a)
	}
	for _, rate := range []struct {
		key string
		unit.Rate
	}{{"capacity", l.Capacity}, {"back", l.Back}} {
		if rate.Rate > unit.MaxRate {
			k.add(field+"."+rate.key, "%s has a capacity of %v: write at most %v", object, rate.Rate, unit.MaxRate)
		}
	}
	switch _, _, routed := l.routed(); {
	case routed && l.Capacity == 0:
		k.add(field+".capacity", "%s has no capacity, which a router does not report: write it, for example capacity: 1Gbit", object)
	case l.Back > 0 && l.Capacity == 0:
		k.add(field+".back", "%s has a capacity from its second end to the first, and none from the first to the second: write capacity too", object)
	}
	if l.Cost == 0 {
		k.add(field+".cost", "%s has a cost of 0: write 1 to 65535", object)
	}
	if l.Reservable > MaxReservable {
		k.add(field+".reservable", "%d %% of the capacity of %s cannot be reserved: write at most %d%%", l.Reservable, object, MaxReservable)
	}
}

// end checks one end of a link.
func (k *configChecker) end(field, object string, p, peer PortRef) {
	k.ref(field, object, p)
	u := k.use(p)
	if u.link && peer.Switch.IsRouter() {
		k.add(field, "%s ends at port %s, which is in link_ports, and those lead to switches: correct the port, or remove it from link_ports", object, k.label(p))
	}
	if u.host && !peer.Switch.IsRouter() {
		k.add(field, "%s ends at port %s, which is in host_ports: correct the port, or remove it from host_ports", object, k.label(p))
	}
	if u.cable {
		k.add(field, "port %s has links to %s and to %s: a port has one cable; remove one of the links", k.label(p), k.label(u.peer), k.label(peer))
		return
	}
	u.cable, u.peer = true, peer
}

func (k *configChecker) trusted(field string, p PortRef) {
	object := "trusted port " + k.label(p)
	k.ref(field, object, p)
	if p.Switch.IsRouter() {
		k.add(field, "%s is of a router, behind which any number of hosts can be: remove it from trust", object)
		return
	}
	u := k.use(p)
	if u.trust {
		k.add(field, "port %s is listed twice: remove one", k.label(p))
	}
	u.trust = true
	k.noLink(field, object, p)
}

// noLink checks that a port can have hosts. subject is the begin of a sentence that ends with what the port has.
func (k *configChecker) noLink(field, subject string, p PortRef) {
	switch u := k.use(p); {
	case u.cable:
		k.add(field, "%s has a link to %s: a port with a link has no hosts; correct the port", subject, k.label(u.peer))
	case u.link:
		k.add(field, "%s is in link_ports: a port with a link has no hosts; correct the port, or remove it from link_ports", subject)
	}
}

// hostAt checks where a host is, and the line to it. field is its port, hosts[3].at.
func (k *configChecker) hostAt(field, object string, h HostConfig) {
	k.ref(field, object, h.At)
	k.noLink(field, object+" is at port "+k.label(h.At)+", which", h.At)
	k.hostLine(strings.TrimSuffix(field, ".at"), object, h)
}

func (k *configChecker) listen(all []Listener) {
	if len(all) == 0 {
		k.add("listen", "the controller listens at no address: write for example listen: [{address: \"0.0.0.0:%d\"}]", ListenPort)
	}
	for i, l := range all {
		field := fmt.Sprintf("listen[%d].address", i)
		if !l.Address.IsValid() || l.Address.Port() == 0 {
			k.add(field, "listener %d has no address and port: write for example 0.0.0.0:%d", i+1, ListenPort)
			continue
		}
		for _, other := range all[:i] {
			if overlap(l.Address, other.Address) {
				k.add(field, "%s is in use by the listener at %s: remove one, or write another port", l.Address, other.Address)
				break
			}
		}
	}
}

// overlap reports whether only one program can listen at both addresses. A listener at :: has connections over IPv4 too.
func overlap(a, b netip.AddrPort) bool {
	covers := func(a, b netip.Addr) bool {
		return a == b || a.IsUnspecified() && (a.Is6() || b.Is4())
	}
	return a.Port() == b.Port() && (covers(a.Addr(), b.Addr()) || covers(b.Addr(), a.Addr()))
}

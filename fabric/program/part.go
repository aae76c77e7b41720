package program

import (
	"maps"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// Part says which of the rules of a switch are made. nil is all rules.
type Part struct {
	// far leaves out all rules but those towards other switches and their hosts, which are nearly all rules of a large network.
	far    bool
	labels map[uint16]bool // those towards switches
	hosts  []fabric.HostID // those towards hosts, in order, each with the label of its switch in labels
}

// Size is how many switches and hosts the rules of a part are towards, 0 for all.
func (p *Part) Size() int {
	if p == nil {
		return 0
	}
	return len(p.labels) + len(p.hosts)
}

// Empty reports whether a part has no rules.
func (p *Part) Empty() bool { return p != nil && p.far && p.Size() == 0 }

// Difference is what differs between what connects a network now and before, for all its switches.
type Difference struct {
	Before, After *Connectivity
	ends          []end
	same          bool            // the next hops and the labels are
	hosts         []fabric.HostID // that are new, gone, or at another switch
}

// end is a switch as a destination, with its labels, 0 if it has none, and its places among the switches, -1 if it is not one.
type end struct {
	id         fabric.DPID
	was, is    uint16
	from, into int
}

// Since returns what differs from before. It takes time in proportion to the hosts and the switches; Part, to the switches.
func (c *Connectivity) Since(before *Connectivity) *Difference {
	d := &Difference{Before: before, After: c, same: c.Next == before.Next}
	places := map[fabric.DPID]int{}
	for i, s := range before.Topology.Switches() {
		places[s.ID] = i
		if _, ok := c.Topology.Switch(s.ID); !ok {
			d.ends = append(d.ends, end{s.ID, before.Labels[s.ID], 0, i, -1})
		}
	}
	for i, s := range c.Topology.Switches() {
		from, ok := places[s.ID]
		if !ok {
			from = -1
		}
		d.ends = append(d.ends, end{s.ID, before.Labels[s.ID], c.Labels[s.ID], from, i})
	}
	for _, e := range d.ends {
		d.same = d.same && e.was == e.is
	}
	for _, h := range c.Topology.Hosts() {
		if was, ok := before.Topology.Host(h.HostID); !ok || was.At.Switch != h.At.Switch {
			d.hosts = append(d.hosts, h.HostID)
		}
	}
	for _, h := range before.Topology.Hosts() {
		if _, ok := c.Topology.Host(h.HostID); !ok {
			d.hosts = append(d.hosts, h.HostID)
		}
	}
	return d
}

// Part returns the part of the rules of a switch outside of which nothing differs.
func (d *Difference) Part(at fabric.DPID) *Part {
	was, ok := d.Before.Topology.Switch(at)
	is, still := d.After.Topology.Switch(at)
	if !ok || !still || formOf(was.Capabilities) != formOf(is.Capabilities) || d.Before.Labels[at] != d.After.Labels[at] {
		return nil
	}
	p := &Part{labels: map[uint16]bool{}, far: d.sameHere(was, is)}
	for _, h := range d.hosts {
		p.add(d, h)
	}
	d.compare(p, is)
	slices.SortFunc(p.hosts, fabric.HostID.Compare)
	p.hosts = slices.Compact(p.hosts)
	return p
}

// compare adds the rules towards switches to which something differs.
func (d *Difference) compare(p *Part, at fabric.Switch) {
	leftBy, leavesBy := d.Before.Circuits.leaving(at.ID), d.After.Circuits.leaving(at.ID)
	if d.same && maps.Equal(leftBy, leavesBy) {
		return
	}
	form := formOf(at.Capabilities)
	was, is := d.Before.Next.From(at.ID), d.After.Next.From(at.ID)
	hop := func(all []fabric.NextHop, place int) fabric.NextHop {
		if place < 0 {
			return fabric.NextHop{}
		}
		return all[place]
	}
	for _, e := range d.ends {
		if e.id == at.ID {
			continue
		}
		before, after := form.toward(e.was, hop(was, e.from), leftBy), form.toward(e.is, hop(is, e.into), leavesBy)
		if before == after {
			continue
		}
		p.labels[e.was], p.labels[e.is] = true, true
		if before.ofHosts() == after.ofHosts() {
			continue
		}
		for _, c := range []*Connectivity{d.Before, d.After} {
			s, _ := c.Topology.Switch(e.id)
			for _, port := range s.Ports {
				for _, h := range c.Topology.HostsAt(fabric.PortID{Switch: e.id, Port: port.No}) {
					p.add(d, h.HostID)
				}
			}
		}
	}
}

// sameHere reports whether the rules of a switch that are not towards others depend on nothing that differs.
func (d *Difference) sameHere(was, is fabric.Switch) bool {
	b, a := d.Before, d.After
	if b.Circuits.concerns(is.ID) || a.Circuits.concerns(is.ID) || was.Capabilities != is.Capabilities || !slices.Equal(b.Tree.Ports(is.ID), a.Tree.Ports(is.ID)) ||
		!slices.EqualFunc(was.Ports, is.Ports, func(p, q fabric.Port) bool { return p.No == q.No }) {
		return false
	}
	for _, p := range is.Ports {
		id := fabric.PortID{Switch: is.ID, Port: p.No}
		if b.Topology.CarriesLink(id) != a.Topology.CarriesLink(id) || b.HostPort(id) != a.HostPort(id) || !slices.EqualFunc(b.Topology.HostsAt(id), a.Topology.HostsAt(id), sameHost) {
			return false
		}
	}
	return true
}

func sameHost(a, b fabric.Host) bool {
	return a.HostID == b.HostID && slices.Equal(a.Addrs, b.Addrs)
}

// add adds the rules towards a host, which refer to the group of its switch.
func (p *Part) add(d *Difference, id fabric.HostID) {
	p.hosts = append(p.hosts, id)
	for _, c := range []*Connectivity{d.Before, d.After} {
		if h, ok := c.Topology.Host(id); ok {
			p.labels[c.Labels[h.At.Switch]] = true
		}
	}
}

// toward is what the rules towards a switch are made of.
type toward struct {
	label     uint16
	hop       fabric.NextHop // without what is in no rule
	protected bool
	// The meters of what is not reserved, by the best port and by that of the detour.
	meter, around openflow.MeterID
}

// toward is zero where there are no rules.
func (f form) toward(label uint16, hop fabric.NextHop, leaving map[fabric.PortNo]openflow.MeterID) toward {
	if label == 0 || hop.Best == 0 {
		return toward{}
	}
	hop.SurvivesSwitch = false
	protected := f.protects(label)
	if !protected {
		hop.Backup, hop.Hairpin = 0, false
	}
	return toward{label, hop, protected, leaving[hop.Best], leaving[hop.Detour]}
}

// ofHosts is what the rules towards hosts of the switch depend on. With a group they do not depend on the next hop.
func (t toward) ofHosts() toward {
	if t.protected {
		t.hop = fabric.NextHop{}
	} else {
		t.hop = fabric.NextHop{Best: t.hop.Best}
	}
	t.around = 0
	return t
}

// rules is how many flows there are, without those towards hosts (labels).
func (t toward) rules() int {
	n := 2
	if t.hop.Hairpin {
		n++
	}
	if t.hop.Detour != 0 {
		n++
	}
	return n
}

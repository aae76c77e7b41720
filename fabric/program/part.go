package program

import (
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// Part says which of the rules of a switch towards other switches and their hosts are made: those are nearly all rules of a large network,
// and a change concerns few of them. All other rules are always made. nil is all rules.
type Part struct {
	labels map[uint16]bool
	hosts  []fabric.HostID // in order, each with the label of its switch in labels
}

// Size is how many switches and hosts the rules of a part are towards, 0 for all.
func (p *Part) Size() int {
	if p == nil {
		return 0
	}
	return len(p.labels) + len(p.hosts)
}

// Difference is what differs between what connects a network now and before, for all its switches.
type Difference struct {
	Before, After *Connectivity
	ends          []end
	hosts         []fabric.HostID // that are new, gone, or at another switch
}

// end is a switch as a destination, with its labels; 0 if it has none.
type end struct {
	id      fabric.DPID
	was, is uint16
}

// Since returns what differs from before. It takes time in proportion to the hosts and the switches; Part, to the switches.
func (c *Connectivity) Since(before *Connectivity) *Difference {
	d := &Difference{Before: before, After: c}
	for _, s := range c.Topology.Switches() {
		d.ends = append(d.ends, end{s.ID, before.Labels[s.ID], c.Labels[s.ID]})
	}
	for _, s := range before.Topology.Switches() {
		if _, ok := c.Topology.Switch(s.ID); !ok {
			d.ends = append(d.ends, end{s.ID, before.Labels[s.ID], 0})
		}
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
	form := formOf(is.Capabilities)
	leftBy, leavesBy := d.Before.Circuits.leaving(at), d.After.Circuits.leaving(at)
	p := &Part{labels: map[uint16]bool{}}
	for _, h := range d.hosts {
		p.add(d, h)
	}
	for _, e := range d.ends {
		if e.id == at {
			continue
		}
		before, after := form.toward(e.was, d.Before.Next.At(at, e.id), leftBy), form.toward(e.is, d.After.Next.At(at, e.id), leavesBy)
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
	slices.SortFunc(p.hosts, fabric.HostID.Compare)
	p.hosts = slices.Compact(p.hosts)
	return p
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

// toward is what the rules towards a switch depend on.
type toward struct {
	label     uint16
	hop       fabric.NextHop // without what is in no rule
	protected bool
	meter     openflow.MeterID // of what is not reserved, by the best port
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
	return toward{label, hop, protected, leaving[hop.Best]}
}

// ofHosts is what the rules towards hosts of the switch depend on. With a group they do not depend on the next hop.
func (t toward) ofHosts() toward {
	if t.protected {
		t.hop = fabric.NextHop{}
	} else {
		t.hop = fabric.NextHop{Best: t.hop.Best}
	}
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

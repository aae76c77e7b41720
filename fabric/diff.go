package fabric

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Diff returns what changed between two topologies: sites and switches, then ports, links and hosts, each in the order
// of their identities, with removals first. Ports of a switch that was added or removed have no events of their own.
func Diff(from, to *Topology) []Event {
	d := differ{from: from, to: to}
	d.switches()
	d.links()
	d.hosts()
	return d.events
}

type differ struct {
	from, to *Topology
	events   []Event
}

func (d *differ) add(e Event, format string, args ...any) {
	e.Text = fmt.Sprintf(format, args...)
	d.events = append(d.events, e)
}

// compare calls removed, then both and added, with the objects of two sorted lists.
func compare[T any](from, to []T, order func(a, b T) int, removed func(T), both func(from, to T), added func(T)) {
	for _, f := range from {
		if _, ok := slices.BinarySearchFunc(to, f, order); !ok {
			removed(f)
		}
	}
	for _, t := range to {
		if i, ok := slices.BinarySearchFunc(from, t, order); ok {
			both(from[i], t)
		} else {
			added(t)
		}
	}
}

func (d *differ) switches() {
	var both [][2]Switch
	compare(d.from.Switches(), d.to.Switches(), func(a, b Switch) int { return cmp.Compare(a.ID, b.ID) },
		func(s Switch) {
			d.add(Event{Kind: SwitchRemoved, Switch: s.ID}, "switch %s was removed", d.from.SwitchLabel(s.ID))
		},
		func(from, to Switch) {
			both = append(both, [2]Switch{from, to})
			if from.Site != to.Site {
				d.add(Event{Kind: SwitchMoved, Switch: to.ID}, "switch %s moved from %s to %s", d.to.SwitchLabel(to.ID), site(from.Site), site(to.Site))
			}
			var changes []string
			if from.Name != to.Name {
				changes = append(changes, fmt.Sprintf("its name was %q and is %q", from.Name, to.Name))
			}
			if from.Capabilities != to.Capabilities {
				changes = append(changes, fmt.Sprintf("its capabilities were %v and are %v", from.Capabilities, to.Capabilities))
			}
			if len(changes) > 0 {
				d.add(Event{Kind: SwitchChanged, Switch: to.ID}, "switch %s changed: %s", d.to.SwitchLabel(to.ID), strings.Join(changes, ", "))
			}
		},
		func(s Switch) {
			d.add(Event{Kind: SwitchAdded, Switch: s.ID}, "switch %s was added, with %s", d.to.SwitchLabel(s.ID), count(len(s.Ports), "port"))
		})
	for _, s := range both {
		d.ports(s[0], s[1])
	}
}

// String prints the capabilities as a list of words.
func (c Capabilities) String() string {
	words := []string{count(c.Tables, "table"), count(c.Meters, "meter")}
	if c.FastFailover {
		words = append(words, "fast failover")
	}
	if c.Bundles {
		words = append(words, "bundles")
	}
	return "(" + strings.Join(words, ", ") + ")"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func site(name string) string {
	if name == "" {
		return "no site"
	}
	return "site " + name
}

func (d *differ) ports(from, to Switch) {
	compare(from.Ports, to.Ports, func(a, b Port) int { return cmp.Compare(a.No, b.No) },
		func(p Port) {
			id := PortID{from.ID, p.No}
			d.add(Event{Kind: PortRemoved, Switch: from.ID, Port: id}, "port %s was removed", d.from.PortLabel(id))
		},
		func(p, q Port) {
			if p == q {
				return
			}
			id := PortID{to.ID, q.No}
			var changes []string
			if p.State != q.State {
				changes = append(changes, fmt.Sprintf("it was %v and is %v", p.State, q.State))
			}
			if p.Speed != q.Speed {
				changes = append(changes, fmt.Sprintf("its speed was %v and is %v", p.Speed, q.Speed))
			}
			if p.Name != q.Name {
				changes = append(changes, fmt.Sprintf("its name was %q and is %q", p.Name, q.Name))
			}
			d.add(Event{Kind: PortChanged, Switch: to.ID, Port: id}, "port %s changed: %s", d.to.PortLabel(id), strings.Join(changes, ", "))
		},
		func(p Port) {
			id := PortID{to.ID, p.No}
			d.add(Event{Kind: PortAdded, Switch: to.ID, Port: id}, "port %s was added", d.to.PortLabel(id))
		})
}

// links pairs a removed link with an added one that leaves the same port, or arrives at the same one: the other end of
// the cable is connected elsewhere.
func (d *differ) links() {
	movedTo := map[LinkID]LinkID{}
	moved := map[LinkID]bool{}
	pair := func(old LinkID, now Link, ok bool) {
		if _, kept := d.from.Link(now.LinkID); ok && !kept && !moved[now.LinkID] {
			movedTo[old], moved[now.LinkID] = now.LinkID, true
		}
	}
	var gone []LinkID
	for _, l := range d.from.Links() {
		if _, ok := d.to.Link(l.LinkID); ok {
			continue
		}
		gone = append(gone, l.LinkID)
		now, ok := d.to.LinkFrom(l.From)
		pair(l.LinkID, now, ok)
	}
	for _, old := range gone {
		if _, ok := movedTo[old]; ok {
			continue
		}
		if i, ok := d.to.arriving[old.To]; ok {
			pair(old, d.to.Links()[i], true)
		}
	}
	for _, old := range gone {
		if now, ok := movedTo[old]; ok {
			d.add(Event{Kind: LinkMoved, Link: now}, "link %s moved, and is %s now", d.from.LinkLabel(old), d.to.LinkLabel(now))
		} else {
			d.add(Event{Kind: LinkRemoved, Link: old}, "link %s was removed", d.from.LinkLabel(old))
		}
	}
	for _, l := range d.to.Links() {
		old, ok := d.from.Link(l.LinkID)
		switch {
		case ok && old != l:
			d.add(Event{Kind: LinkChanged, Link: l.LinkID}, "link %s changed: it had %v (%v) at cost %d, and has %v (%v) at cost %d",
				d.to.LinkLabel(l.LinkID), old.Capacity, old.Source, old.Cost, l.Capacity, l.Source, l.Cost)
		case !ok && !moved[l.LinkID]:
			d.add(Event{Kind: LinkAdded, Link: l.LinkID}, "link %s was added, with %v (%v) at cost %d", d.to.LinkLabel(l.LinkID), l.Capacity, l.Source, l.Cost)
		}
	}
}

func (d *differ) hosts() {
	compare(d.from.Hosts(), d.to.Hosts(), func(a, b Host) int { return a.HostID.Compare(b.HostID) },
		func(h Host) {
			d.add(Event{Kind: HostRemoved, Host: h.HostID, Port: h.At}, "host %s at %s was removed", h.label(), d.from.PortLabel(h.At))
		},
		func(from, to Host) {
			if from.At != to.At {
				d.add(Event{Kind: HostMoved, Host: to.HostID, Port: to.At}, "host %s moved from %s to %s", to.label(), d.from.PortLabel(from.At), d.to.PortLabel(to.At))
			}
			var changes []string
			if from.Name != to.Name {
				changes = append(changes, fmt.Sprintf("its name was %q and is %q", from.Name, to.Name))
			}
			if !slices.Equal(from.Addrs, to.Addrs) {
				changes = append(changes, fmt.Sprintf("its addresses were %s and are %s", addrs(from.Addrs), addrs(to.Addrs)))
			}
			if from.Learned != to.Learned {
				changes = append(changes, fmt.Sprintf("it was learned by %v and now by %v", from.Learned, to.Learned))
			}
			if len(changes) > 0 {
				d.add(Event{Kind: HostChanged, Host: to.HostID, Port: to.At}, "host %s changed: %s", to.label(), strings.Join(changes, ", "))
			}
		},
		func(h Host) {
			d.add(Event{Kind: HostAdded, Host: h.HostID, Port: h.At}, "host %s with %s was added at %s", h.label(), addrs(h.Addrs), d.to.PortLabel(h.At))
		})
}

// label prints the name of a host and its identity.
func (h Host) label() string {
	if h.Name == "" {
		return h.HostID.String()
	}
	return h.Name + " (" + h.HostID.String() + ")"
}

func addrs(list []netip.Addr) string {
	if len(list) == 0 {
		return "no address"
	}
	var s []string
	for _, a := range list {
		s = append(s, a.String())
	}
	return strings.Join(s, ", ")
}

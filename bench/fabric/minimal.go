package fabric

import (
	"fmt"
	"slices"

	"headgate.dev/headgate/bench/inmemory"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// minimal judges the changes that switches were told when a cable died, by the next hops and the trees of before and after: the
// rules of a switch for another one may change only if the next hop there differs, and must then.
type minimal struct {
	before, after         *fabric.NextHops
	treeBefore, treeAfter *fabric.Tree
	ends                  map[fabric.DPID]bool // of the cable
	labels                map[uint16]fabric.DPID
}

// newMinimal compares two networks, of which the second lacks a cable between two switches. labels are those that the switches
// have.
func newMinimal(before, after *fabric.Topology, ends [2]fabric.DPID, labels map[uint64]uint16) minimal {
	m := minimal{
		before: before.NextHops(), after: after.NextHops(), treeBefore: before.SpanningTree(), treeAfter: after.SpanningTree(),
		ends: map[fabric.DPID]bool{ends[0]: true, ends[1]: true}, labels: map[uint16]fabric.DPID{},
	}
	for id, l := range labels {
		m.labels[l] = fabric.DPID(id)
	}
	return m
}

// The numbers of groups and of the label of broadcast (fabric/program/labels.go).
const (
	groupBase             = 0x48470000
	hairpinBase           = groupBase + 0x1000
	floodBase             = groupBase + 0x2000
	floodVLAN      uint16 = 4094
	labelsOfGroups        = 0xfff
)

// route is what a rule is for: the way from a switch to another.
type route struct{ at, to fabric.DPID }

// needs reports whether a change may be, and the route whose rules it changes, if it is one.
func (m minimal) needs(at fabric.DPID, message openflow.Message) (needed bool, of route, isRoute bool) {
	toLabel := func(label uint16) (bool, route, bool) {
		to, ok := m.labels[label]
		r := route{at, to}
		return ok && differ(m.before.At(at, to), m.after.At(at, to)), r, ok
	}
	tree := !slices.Equal(m.treeBefore.Ports(at), m.treeAfter.Ports(at)) || m.ends[at]
	switch c := message.(type) {
	case *openflow.GroupMod:
		switch {
		case c.Group >= floodBase:
			return tree, of, false
		case c.Group >= groupBase:
			return toLabel(uint16(c.Group & labelsOfGroups))
		}
	case *openflow.FlowMod:
		switch c.Table {
		case program.TablePort:
			return m.ends[at], of, false
		case program.TableLabel:
			f, ok := c.Match.Get(openflow.FieldVLANVID)
			if label := program.VLANOf(f); ok && label != floodVLAN {
				return toLabel(label)
			}
			return ok && tree, of, false
		}
	}
	return false, of, false
}

// differ reports whether two next hops have different rules. That a backup leads around a switch is in none.
func differ(a, b fabric.NextHop) bool {
	a.SurvivesSwitch, b.SurvivesSwitch = false, false
	return a != b
}

// changes is how many next hops have different rules.
func (m minimal) changes() (n int) {
	for _, c := range m.after.Changes(m.before) {
		if differ(c.Old, c.New) {
			n++
		}
	}
	return n
}

// judge returns the changes that need not be, and the routes that changed without a change of their rules.
func (m minimal) judge(mods []inmemory.Mod) (needless, missing []string, err error) {
	told := map[route]bool{}
	for _, one := range mods {
		_, message, err := openflow.Decode(one.Message)
		if err != nil {
			return nil, nil, err
		}
		ok, r, isRoute := m.needs(fabric.DPID(one.Switch), message)
		if isRoute {
			told[r] = true
		}
		if !ok {
			needless = append(needless, fmt.Sprintf("%016x: %v", one.Switch, message))
		}
	}
	for _, c := range m.after.Changes(m.before) {
		if differ(c.Old, c.New) && !told[route{c.At, c.To}] {
			missing = append(missing, fmt.Sprintf("from %v to %v: %+v becomes %+v", c.At, c.To, c.Old, c.New))
		}
	}
	return needless, missing, nil
}

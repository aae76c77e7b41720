package fabric

import (
	"cmp"
	"slices"

	"headgate.dev/headgate/unit"
)

// Tree is a set of cables along which a broadcast arrives once at every switch: a spanning tree of each component of the
// network.
type Tree struct {
	// Links are both directions of the cables, in order.
	Links []LinkID
	// Components are the switches that are connected with each other, each in order of their datapath ids; the component
	// with the lowest id comes first. A network in one piece has one.
	Components [][]DPID

	ports map[DPID][]PortNo
}

// Ports returns the ports of a switch that belong to the tree, in ascending order.
func (t *Tree) Ports(id DPID) []PortNo { return t.ports[id] }

// SpanningTree returns the tree for broadcast and unknown multicast. It consists of cables that are usable in both
// directions.
//
// It is the minimum spanning tree by the algorithm of J. Kruskal (Proceedings of the American Mathematical Society 7,
// 1956): a cable of lower cost is preferred, then one of higher capacity, then the one with the lesser identity. A
// cable costs what its more expensive direction does, and has the lower of its capacities. As no two cables are equal in
// this order, there is only one such tree, which therefore does not depend on history: all controllers compute the
// same.
//
// The tree is stable. A cable that fails and is not in it changes nothing; one that is in it is replaced by at most one
// other. A cable that is added, or whose cost or capacity changes, replaces at most one and is replaced by at most one.
// A tree of shortest paths has shorter paths, but one cable can change most of it, and each change loses broadcasts
// that are under way.
func (t *Topology) SpanningTree() *Tree {
	cables := t.cables()
	slices.SortFunc(cables, cable.compare)
	sets := newSets(len(t.parts.Switches))
	tree := &Tree{ports: map[DPID][]PortNo{}}
	for _, c := range cables {
		if !sets.join(t.graph.tail[c.link], t.graph.head[c.link]) {
			continue
		}
		id := t.parts.Links[c.link].LinkID
		tree.Links = append(tree.Links, id, id.Reverse())
		for _, end := range []PortID{id.From, id.To} {
			tree.ports[end.Switch] = append(tree.ports[end.Switch], end.Port)
		}
	}
	slices.SortFunc(tree.Links, LinkID.Compare)
	for _, ports := range tree.ports {
		slices.Sort(ports)
	}
	component := map[int32]int{}
	for i, s := range t.parts.Switches {
		root := sets.find(int32(i))
		c, ok := component[root]
		if !ok {
			c = len(tree.Components)
			component[root] = c
			tree.Components = append(tree.Components, nil)
		}
		tree.Components[c] = append(tree.Components[c], s.ID)
	}
	return tree
}

// cable is two usable links in opposite directions.
type cable struct {
	link     int32 // the one with the lesser identity
	cost     uint16
	capacity unit.Rate
}

func (c cable) compare(d cable) int {
	return cmp.Or(cmp.Compare(c.cost, d.cost), cmp.Compare(d.capacity, c.capacity), cmp.Compare(c.link, d.link))
}

// cables returns the cables in order of their identities.
func (t *Topology) cables() []cable {
	var all []cable
	for i, l := range t.parts.Links {
		if twin := t.graph.twin[i]; twin > int32(i) {
			back := t.parts.Links[twin]
			all = append(all, cable{int32(i), max(l.Cost, back.Cost), min(l.Capacity, back.Capacity)})
		}
	}
	return all
}

// sets are disjoint sets of switches.
type sets []int32 // the parent of each, itself for the root of a set

func newSets(n int) sets {
	s := make(sets, n)
	for i := range s {
		s[i] = int32(i)
	}
	return s
}

func (s sets) find(i int32) int32 {
	for s[i] != i {
		s[i] = s[s[i]]
		i = s[i]
	}
	return i
}

// join makes one set of two, and reports false if they are one already.
func (s sets) join(a, b int32) bool {
	a, b = s.find(a), s.find(b)
	s[a] = b
	return a != b
}

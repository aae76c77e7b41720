package shaper

import (
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/usage"
)

// Usage returns the counters of the device's directions for package usage.
func (s State) Usage() (out []usage.Direction) {
	for _, d := range []struct {
		name  string
		tree  *group.Tree
		state *DirectionState
	}{{"out", s.Plan.Out, s.Out}, {"in", s.Plan.In, s.In}} {
		if d.tree != nil && d.state != nil {
			out = append(out, d.state.usage(d.name, *d.tree, s.At))
		}
	}
	return out
}

func (d *DirectionState) usage(name string, t group.Tree, at time.Time) usage.Direction {
	if !d.At.IsZero() {
		at = d.At
	}
	out := usage.Direction{Name: name, Limit: t.Limit, Control: counters(d.Control, at)}
	for n, g := range d.Groups {
		if n >= len(t.Nodes) {
			break
		}
		one := usage.Group{Path: g.Path, Parent: t.Nodes[n].Parent, Leaf: t.Nodes[n].Leaf, Guarantee: g.Guarantee, Counters: counters(g, at), Delay: g.QueueDelay}
		if g.Clients != nil {
			one.Backlog = 0 // of some clients, which have their ceilings: the guarantee is that of all
		}
		out.Groups = append(out.Groups, one)
	}
	return out
}

func counters(g GroupState, at time.Time) usage.Counters {
	return usage.Counters{
		Class: g.Class, Bytes: g.Bytes, Packets: g.Packets, Drops: g.Drops, Marks: g.Marks, Backlog: g.BacklogBytes,
		QueuedFor: g.QueuedFor, Queued: g.QueuedBytes, At: at,
	}
}

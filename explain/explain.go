package explain

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Explanation says which rule, group and class a packet gets on a device.
type Explanation struct {
	Packet     string      `json:"packet"`
	Dev        string      `json:"dev"`
	InForce    bool        `json:"in_force"`
	Directions []Direction `json:"directions"`
}

// Direction explains one direction.
type Direction struct {
	Direction string `json:"direction"`
	Limited   bool   `json:"limited"`
	// Reason is "rule", "default", "control", or "assigned" at run time.
	Reason   string `json:"reason,omitempty"`
	Rule     *int   `json:"rule,omitempty"`
	Selector string `json:"selector,omitempty"`
	Place    string `json:"place,omitempty"` // "eth0.yaml:9: out.groups[0].match[1]"
	Group    string `json:"group,omitempty"`
	Class    string `json:"class,omitempty"`
	// Beyond is the class of control traffic that exceeds the group's budget for control traffic.
	Beyond string `json:"class_beyond_budget,omitempty"`
	// Client is the address or prefix of the packet's client in a group with each:, and Ceiling is
	// the client's ceiling.
	Client  string    `json:"client,omitempty"`
	Ceiling unit.Rate `json:"client_ceiling,omitempty"`
	// Note is a warning that the packet may look different at this point.
	Note string `json:"note,omitempty"`
}

// Source is what an explanation follows from: the actual state of a device, its configuration, or both.
type Source struct {
	// State is the actual state; nil if it is not known.
	State *shaper.State
	// File is the configuration; nil if it is not known. Its rules are those in force if there is a State.
	File *config.Interface
	// Assigned are the connections that are assigned at run time, and Clients the active clients of groups
	// with each:.
	Assigned []shaper.Assignment
	Clients  []shaper.Client
}

// Explain explains a packet in the given directions of a device.
func (s Source) Explain(dev string, p group.Packet, directions ...string) Explanation {
	e := Explanation{Packet: p.String(), Dev: dev, InForce: s.State != nil}
	for _, d := range directions {
		e.Directions = append(e.Directions, s.direction(d, p))
	}
	return e
}

// SameRules reports whether the rules in the file are those in force.
func (s Source) SameRules() bool {
	same := func(a, b *group.Tree) bool {
		return a == nil && b == nil || a != nil && b != nil && len(a.Rules) == len(b.Rules) &&
			(len(a.Rules) == 0 || reflect.DeepEqual(a.Rules, b.Rules))
	}
	return same(s.State.Plan.Out, s.File.OutTree) && same(s.State.Plan.In, s.File.InTree)
}

// ingress returns the direction of the packets that the device receives.
func (s Source) ingress() string {
	perspective := group.Host
	if s.State != nil {
		perspective = s.State.Plan.Perspective
	} else if s.File != nil {
		perspective = s.File.Perspective
	}
	if perspective == group.Guest {
		return "out"
	}
	return "in"
}

// direction evaluates the rules and assignments of one direction for a packet.
func (s Source) direction(direction string, p group.Packet) Direction {
	var tree *group.Tree
	var counters *shaper.DirectionState
	var places []string
	if s.File != nil {
		tree, places = s.File.OutTree, s.File.OutRules
		if direction == "in" {
			tree, places = s.File.InTree, s.File.InRules
		}
	}
	if s.State != nil {
		tree, counters = s.State.Plan.Out, s.State.Out
		if direction == "in" {
			tree, counters = s.State.Plan.In, s.State.In
		}
	}
	x := Direction{Direction: direction, Limited: tree != nil}
	if tree == nil {
		return x
	}
	rule, leaf := tree.Classify(p)
	x.Reason = "default"
	if to, ok := s.assignment(tree, p); ok {
		x.Reason, rule, leaf = "assigned", -1, to
	}
	x.Group = tree.Nodes[leaf].Path
	if rule >= 0 {
		x.Reason, x.Rule, x.Selector = "rule", &rule, tree.Rules[rule].Selector.String()
		if rule < len(places) {
			file, line, _ := s.File.Where(places[rule])
			x.Place = fmt.Sprintf("%s:%d: %s", file, line, places[rule])
		}
	}
	if p.Mark != 0 && direction == s.ingress() && slices.ContainsFunc(tree.Rules[:min(rule+1, len(tree.Rules))], func(r group.Rule) bool { return r.Selector.MatchesOnMark() }) {
		x.Note = "received packets have no mark at this point, unless one was set before they reached the device: the firewall sets marks later"
	}
	if counters != nil && leaf < len(counters.Groups) {
		x.Class = counters.Groups[leaf].Class
	}
	if n := tree.Nodes[leaf]; !n.Clients.IsZero() {
		s.client(&x, n, p)
	}
	if p.Control() {
		x.Reason = "control"
		if counters != nil {
			x.Beyond, x.Class = x.Class, counters.Control.Class
		}
	}
	return x
}

// client sets the packet's client, and the client's class if the client has one now.
func (s Source) client(x *Direction, n group.Node, p group.Packet) {
	of := shaper.Client{Client: n.Clients.Each.Client(p)}
	x.Client, x.Class, x.Ceiling = of.Name(), "", n.Clients.Ceiling
	for _, c := range s.Clients {
		if c.Direction == x.Direction && c.Group == n.Path && c.Client == of.Client {
			x.Class = c.Class
		}
	}
}

// assignment returns the leaf group to which the packet's connection is assigned.
// ok is false without an assignment, or if the direction has no such group.
func (s Source) assignment(tree *group.Tree, p group.Packet) (leaf int, ok bool) {
	if !p.HasPorts() {
		return 0, false
	}
	src, dst := netip.AddrPortFrom(p.Src, p.SPort), netip.AddrPortFrom(p.Dst, p.DPort)
	forth, back := shaper.Conn{Proto: p.Proto, A: src, B: dst}, shaper.Conn{Proto: p.Proto, A: dst, B: src}
	i := slices.IndexFunc(s.Assigned, func(a shaper.Assignment) bool { return a.Conn == forth || a.Conn == back })
	if i < 0 {
		return 0, false
	}
	leaf = slices.IndexFunc(tree.Nodes, func(n group.Node) bool { return n.Leaf && n.Path == s.Assigned[i].Group })
	return leaf, leaf >= 0
}

package classifier

import (
	"net/netip"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// recordV1 is the Record of earlier Headgate versions, whose rules had DSCP, VLAN and marks
// as plain numbers instead of ranges and masks.
type recordV1 struct {
	Engine     group.Engine
	Build      string
	Plan       plainPlan
	In         bool
	Classes    map[string]uint16
	Cgroups    map[string]uint64
	Clsact     bool
	IFB        int
	Token      uint32
	Generation uint32
	LinkHeader uint32
	Options    []byte
}

type plainPlan struct {
	Dev         string
	Perspective group.Perspective
	Overhead    group.Overhead
	Out, In     *plainTree
}

type plainTree struct {
	Limit   unit.Rate
	Spare   group.Spare
	Nodes   []group.Node
	Rules   []plainRule
	Default int
}

type plainRule struct {
	Selector plainSelector
	Node     int
}

type plainSelector struct {
	Proto        []uint8
	Src, Dst     []netip.Prefix
	SPort, DPort []group.PortRange
	DSCP         []uint8
	VLAN         []uint16
	Mark         []uint32
	Cgroup       string
}

func (p recordV1) record() Record {
	return Record{
		Engine: p.Engine, Build: p.Build, In: p.In, Classes: p.Classes, Cgroups: p.Cgroups, Clsact: p.Clsact, IFB: p.IFB,
		Token: p.Token, Generation: p.Generation, LinkHeader: p.LinkHeader, Options: p.Options,
		Plan: shaper.Plan{Dev: p.Plan.Dev, Perspective: p.Plan.Perspective, Overhead: p.Plan.Overhead, Out: p.Plan.Out.tree(), In: p.Plan.In.tree()},
	}
}

func (p *plainTree) tree() *group.Tree {
	if p == nil {
		return nil
	}
	t := &group.Tree{Limit: p.Limit, Spare: p.Spare, Nodes: p.Nodes, Default: p.Default}
	for _, r := range p.Rules {
		s := r.Selector
		out := group.Selector{Proto: s.Proto, Src: s.Src, Dst: s.Dst, SPort: s.SPort, DPort: s.DPort, Cgroup: s.Cgroup}
		for _, v := range s.DSCP {
			out.DSCP = append(out.DSCP, group.SingleRange(uint16(v)))
		}
		for _, v := range s.VLAN {
			out.VLAN = append(out.VLAN, group.SingleRange(v))
		}
		for _, v := range s.Mark {
			out.Mark = append(out.Mark, group.Mark{Value: v, Mask: group.AllBits})
		}
		t.Rules = append(t.Rules, group.Rule{Selector: out, Node: r.Node})
	}
	return t
}

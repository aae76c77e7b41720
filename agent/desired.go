package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// Device is a network device that exists.
type Device struct {
	Index int // a device that is recreated has a new index
	Name  string
	// AltNames are the alternative names, by which configuration files may also name the device.
	AltNames []string
	MTU      int
	Up       bool
}

// Names returns the alternative names of the devices, by kernel name.
func Names(devices []Device) group.AltNames {
	out := group.AltNames{}
	for _, d := range devices {
		if len(d.AltNames) > 0 {
			out[d.Name] = d.AltNames
		}
	}
	return out
}

// DesiredState is the desired state of one device.
type DesiredState struct {
	engine group.Engine
	plan   shaper.Plan
	source string   // "file:line"
	absent []string // cgroups that do not exist, whose rules are inactive
	// connections are the assignments that the controllers request.
	connections []shaper.Assignment
	// reserved are the keys of the reservations that have groups in the plan.
	reserved []string
	// cause identifies everything that the kernel's state for this plan depends on. The plan is
	// applied again when cause changes.
	cause string
}

// desiredStates returns the desired state of the existing devices, by index. cgroup returns the id of a
// cgroup, or false if it does not exist; connections returns the assignments for a device or
// pattern of a document.
func desiredStates(set config.Set, devices []Device, cgroup func(path string) (uint64, bool), connections func(dev string) []shaper.Assignment) map[int]DesiredState {
	out := map[int]DesiredState{}
	for _, d := range devices {
		i, ok := set.For(d.Name)
		if !ok {
			continue
		}
		w := DesiredState{engine: i.Engine, source: i.Name()}
		w.plan = shaper.NewPlan(d.Name, i.Resolved)
		ids := map[string]uint64{}
		for _, path := range cgroupsOf(i) {
			if id, ok := cgroup(path); ok {
				ids[path] = id
			} else {
				w.absent = append(w.absent, path)
			}
		}
		w.plan.Out = withoutCgroups(w.plan.Out, w.absent)
		if connections != nil {
			w.connections = connections(i.WrittenDev())
		}
		w.cause = fmt.Sprint(d.Index, d.MTU, d.Up, w.engine, planHash(w.plan), ids, w.connections)
		out[d.Index] = w
	}
	return out
}

// cgroupsOf returns the cgroups that an interface's rules name, sorted. Only rules of "out" may
// name cgroups.
func cgroupsOf(i config.Interface) (paths []string) {
	if i.OutTree == nil {
		return nil
	}
	for _, r := range i.OutTree.Rules {
		paths = append(paths, r.Selector.Cgroups()...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// withoutCgroups returns the tree without the rules and exclusions that name absent cgroups: no
// packet can match them.
func withoutCgroups(t *group.Tree, absent []string) *group.Tree {
	if t == nil || len(absent) == 0 {
		return t
	}
	less := *t
	less.Rules = slices.DeleteFunc(slices.Clone(t.Rules), func(r group.Rule) bool {
		return slices.Contains(absent, r.Selector.Cgroup)
	})
	for i := range less.Rules {
		s := &less.Rules[i].Selector
		s.Not = slices.Clone(s.Not)
		for n := range s.Not {
			if slices.Contains(absent, s.Not[n].Cgroup) {
				s.Not[n].Cgroup = ""
			}
		}
		s.Not = slices.DeleteFunc(s.Not, group.Selector.IsZero)
	}
	return &less
}

// planHash returns a short hash of a plan, by which plans are compared. An empty list and a nil list
// have the same hash: a plan read back from the kernel may have either. The hash of a plan is that of earlier
// versions, which the state file has of a device that is no longer configured.
func planHash(p shaper.Plan) string {
	h := sha256.New()
	fmt.Fprint(h, p.Dev, p.Perspective, p.Overhead, p.GSO, p.Quantum)
	for _, t := range []*group.Tree{p.Out, p.In} {
		if t != nil {
			hashTree(h, *t)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// hashTree writes a tree as versions without adjustable groups did, and then which groups are adjustable.
func hashTree(h io.Writer, t group.Tree) {
	type node struct {
		Path               string
		Parent, Depth      int
		Leaf               bool
		Guarantee, Ceiling unit.Rate
		Priority           int
		Clients            group.Clients
	}
	plain := struct {
		Limit   unit.Rate
		Spare   group.Spare
		Nodes   []node
		Rules   []group.Rule
		Default int
	}{t.Limit, t.Spare, make([]node, len(t.Nodes)), t.Rules, t.Default}
	for i, n := range t.Nodes {
		plain.Nodes[i] = node{n.Path, n.Parent, n.Depth, n.Leaf, n.Guarantee, n.Ceiling, n.Priority, n.Clients}
	}
	fmt.Fprintf(h, "\n%+v", plain)
	for _, n := range t.Nodes {
		if n.Adjustable {
			fmt.Fprint(h, " adjustable ", n.Path)
		}
	}
}

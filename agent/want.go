package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"headgate/config"
	"headgate/group"
	"headgate/shaper"
)

// Device is a network device that exists.
type Device struct {
	Index int // a device that is made again has another
	Name  string
	// AltNames are alternative names, by which files may name it too.
	AltNames []string
	MTU      int
	Up       bool
}

// Names are the alternative names of devices.
func Names(devices []Device) group.Names {
	out := group.Names{}
	for _, d := range devices {
		if len(d.AltNames) > 0 {
			out[d.Name] = d.AltNames
		}
	}
	return out
}

// want is what one device shall have.
type want struct {
	engine group.Engine
	plan   shaper.Plan
	source string   // "file:line"
	absent []string // cgroups that do not exist now, whose rules wait for them
	// connections are to be in groups.
	connections []shaper.Assignment
	// cause tells all that the kernel's state for this plan depends on: if it
	// changes, it is time to apply.
	cause string
}

// wants is what the files ask for the devices that exist. cgroup gives the id of
// a cgroup, or false if there is none, and connections those of what a document names.
func wants(set config.Set, devices []Device, cgroup func(path string) (uint64, bool), connections func(dev string) []shaper.Assignment) map[int]want {
	out := map[int]want{}
	for _, d := range devices {
		i, ok := set.For(d.Name)
		if !ok {
			continue
		}
		w := want{engine: i.Engine, source: i.Name()}
		w.plan = shaper.Plan{Dev: d.Name, Perspective: i.Perspective, Overhead: i.Overhead, GSO: i.GSO, Quantum: i.QuantumOptions, Out: i.OutTree, In: i.InTree}
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
			w.connections = connections(i.Called())
		}
		w.cause = fmt.Sprint(d.Index, d.MTU, d.Up, w.engine, mark(w.plan), ids, w.connections)
		out[d.Index] = w
	}
	return out
}

// cgroupsOf are the cgroups that an interface's rules name, sorted. Only "out"
// may name any.
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

// withoutCgroups leaves out rules that no packet can match now, and of others what
// they exclude and nobody has.
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

// mark is a short name for a plan, to tell whether two are the same. A list of
// nothing and none are the same: a plan comes back from the kernel with either.
func mark(p shaper.Plan) string {
	h := sha256.New()
	fmt.Fprint(h, p.Dev, p.Perspective, p.Overhead, p.GSO, p.Quantum)
	for _, t := range []*group.Tree{p.Out, p.In} {
		if t != nil {
			fmt.Fprintf(h, "\n%+v", *t)
		}
		fmt.Fprintln(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

package classifier

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf"
)

// Reuse chooses, from a direction's old maps and those that both directions
// share, the ones that a new program goes on with, and fits the spec to them. A
// map of another layout is left behind; CarryOver saves what was in it. own are
// the engine's maps.
func Reuse(spec *ebpf.CollectionSpec, old, shared map[string]*ebpf.Map, sameRules bool, own ...string) map[string]*ebpf.Map {
	out := map[string]*ebpf.Map{}
	have := maps.Clone(old)
	if have == nil {
		have = map[string]*ebpf.Map{}
	}
	maps.Copy(have, shared)
	names := append([]string{Assigned, Fragments, ControlMap, Counters}, own...)
	if sameRules {
		names = append(names, RuleHits)
	}
	for _, name := range names {
		m, ok := have[name]
		s := spec.Maps[name]
		if !ok || s == nil {
			continue
		}
		want := s.MaxEntries
		if grows := name == Counters || slices.Contains(own, name); grows && m.MaxEntries() >= want {
			s.MaxEntries = m.MaxEntries()
		}
		if s.Compatible(m) == nil {
			out[name] = m
		} else {
			s.MaxEntries = want
		}
	}
	return out
}

// CarryOver copies what old maps hold and the new ones, made for more groups,
// do not.
func CarryOver(c *ebpf.Collection, old, reused map[string]*ebpf.Map) {
	from, to := old[Counters], c.Maps[Counters]
	if from == nil || to == nil || reused[Counters] != nil || from.ValueSize() != to.ValueSize() {
		return
	}
	for i := range min(from.MaxEntries(), to.MaxEntries()) {
		var v []Counter
		if from.Lookup(i, &v) == nil {
			_ = to.Put(i, v)
		}
	}
}

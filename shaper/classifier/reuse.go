package classifier

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"headgate/internal/bpfobj"
)

// Inherited are maps of the program that is in force, for the one that will take
// its place.
type Inherited struct {
	// Reuse are those that it goes on with.
	Reuse map[string]*ebpf.Map
	// Carry are those that are laid out otherwise or have too little room; Load
	// copies what is in them.
	Carry map[string]*ebpf.Map
}

// Inherit chooses, from a direction's old maps and those that both directions
// share, what a new program inherits, and fits the spec to it. own are the
// engine's maps.
func Inherit(spec *ebpf.CollectionSpec, old, shared map[string]*ebpf.Map, sameRules bool, own ...string) Inherited {
	out := Inherited{map[string]*ebpf.Map{}, map[string]*ebpf.Map{}}
	// Fragments are not among them: an entry counts only for the rules that made it.
	names := append([]string{Assigned, ControlMap, Counters}, own...)
	if sameRules {
		names = append(names, RuleHits)
	}
	for _, name := range names {
		m, ok := shared[name]
		if !ok {
			m, ok = old[name]
		}
		s := spec.Maps[name]
		if !ok || s == nil {
			continue
		}
		if name == Assigned { // of both directions, of which the other may go on with it
			s.MaxEntries = m.MaxEntries()
		}
		if grows := name == Counters || slices.Contains(own, name); grows {
			s.MaxEntries = max(s.MaxEntries, m.MaxEntries())
		}
		if Fits(s, m) == nil {
			out.Reuse[name] = m
		} else {
			out.Carry[name] = m
		}
	}
	return out
}

// AllOrNone tells whether all of some maps are reused; else none of them is inherited.
func (i Inherited) AllOrNone(names []string) bool {
	all := true
	for _, name := range names {
		_, ok := i.Reuse[name]
		all = all && ok
	}
	for _, name := range names {
		delete(i.Carry, name)
		if !all {
			delete(i.Reuse, name)
		}
	}
	return all
}

// Fits tells why a program that was compiled for a map like spec cannot use m: it
// is of another kind or size, or its keys or values are laid out otherwise.
func Fits(spec *ebpf.MapSpec, m *ebpf.Map) error {
	if m.KeySize() != spec.KeySize || m.ValueSize() != spec.ValueSize {
		return fmt.Errorf("its entries have %d and %d bytes, not %d and %d", m.KeySize(), m.ValueSize(), spec.KeySize, spec.ValueSize)
	}
	if err := spec.Compatible(m); err != nil {
		return err
	}
	key, value, err := bpfobj.MapLayouts(m)
	if err != nil {
		return err
	}
	if !key.Same(bpfobj.Described(spec.Key, int(spec.KeySize))) || !value.Same(bpfobj.Described(spec.Value, int(spec.ValueSize))) {
		return fmt.Errorf("the members of its entries are others, or stand in other places")
	}
	return nil
}

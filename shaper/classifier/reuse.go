package classifier

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/internal/bpfobj"
)

// Inherited holds the maps of the program in force that its replacement takes over.
type Inherited struct {
	// Reuse has the maps that the new program uses directly.
	Reuse map[string]*ebpf.Map
	// Migrate has the maps whose layout or size has changed; Load copies their entries.
	Migrate map[string]*ebpf.Map
}

// Inherit selects, from a direction's old maps and those that both directions share, the maps
// that a new program takes over, and adapts the spec. own are the names of the engine's own
// maps.
func Inherit(spec *ebpf.CollectionSpec, old, shared map[string]*ebpf.Map, sameRules bool, own ...string) Inherited {
	out := Inherited{map[string]*ebpf.Map{}, map[string]*ebpf.Map{}}
	// Fragments is not inherited: an entry is valid only for the rules that created it.
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
		if name == Assigned { // shared by both directions; the other direction may keep using the map
			s.MaxEntries = m.MaxEntries()
		}
		if grows := name == Counters || slices.Contains(own, name); grows {
			s.MaxEntries = max(s.MaxEntries, m.MaxEntries())
		}
		if Compatible(s, m) == nil {
			out.Reuse[name] = m
		} else {
			out.Migrate[name] = m
		}
	}
	return out
}

// AllOrNone reports whether all of the named maps are reused; otherwise none of them is
// inherited.
func (i Inherited) AllOrNone(names []string) bool {
	all := true
	for _, name := range names {
		_, ok := i.Reuse[name]
		all = all && ok
	}
	for _, name := range names {
		delete(i.Migrate, name)
		if !all {
			delete(i.Reuse, name)
		}
	}
	return all
}

// Compatible returns an error if a program that was compiled for a map like spec cannot use m,
// because type, size or layout differ.
func Compatible(spec *ebpf.MapSpec, m *ebpf.Map) error {
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
	if !key.Compatible(bpfobj.LayoutOrOpaque(spec.Key, int(spec.KeySize))) || !value.Compatible(bpfobj.LayoutOrOpaque(spec.Value, int(spec.ValueSize))) {
		return fmt.Errorf("the fields of its entries or their offsets differ")
	}
	return nil
}

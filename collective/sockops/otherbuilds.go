package sockops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// RetireOtherBuilds stops the programs of other builds from adding connections, and removes those
// programs that have no cap left to lift. held is the number of connections that are or
// may become capped by the remaining ones: after Remove these would stay capped for ever.
func (t *Table) RetireOtherBuilds() (held int, err error) {
	pins, err := filepath.Glob(filepath.Join(t.dir, otherBuildPrefix+"*"))
	if err != nil {
		return 0, err
	}
	for _, pin := range pins {
		n, err := retire(pin)
		if err == nil && n == 0 {
			err = os.Remove(pin)
		}
		if err != nil { // it costs little, and Remove removes it
			slog.Warn("cannot retire program of another build", "pin", pin, "error", err)
		}
		held = max(held, n) // programs of one build share their slots
	}
	return held, nil
}

// retire stops a pinned program, and returns how many connections are or may become
// capped by it.
func retire(pin string) (held int, err error) {
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	info, err := l.Info()
	if err != nil {
		return 0, err
	}
	maps, err := mapsOf(info.Program)
	defer func() {
		for _, m := range maps {
			m.Close()
		}
	}()
	if err != nil {
		return 0, err
	}
	// The layout may differ in another build, so look up names.
	variables, slots := false, false
	for _, m := range maps {
		types, err := typesOf(m)
		if err != nil {
			return 0, err
		}
		if types == nil {
			continue
		}
		if at, ok := variable(types, "cgroup_id"); ok {
			variables = true
			if err := zero(m, at); err != nil {
				return 0, fmt.Errorf("cannot stop it from adding connections: %w", err)
			}
		}
		var of *btf.Struct
		if types.TypeByName("slot", &of) == nil && m.Type() == ebpf.Array {
			slots = true
			n, err := countCapped(m, of)
			if err != nil {
				return 0, err
			}
			held += n
		}
	}
	if !variables || !slots {
		return 0, errors.New("program has no cgroup_id or no slots")
	}
	return held, nil
}

// mapsOf opens the maps of a program.
func mapsOf(id ebpf.ProgramID) (maps []*ebpf.Map, err error) {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return nil, err
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			return maps, err
		}
		maps = append(maps, m)
	}
	return maps, nil
}

// typesOf returns the BTF types of a map; nil if it has none.
func typesOf(m *ebpf.Map) (*btf.Spec, error) {
	info, err := m.Info()
	if err != nil {
		return nil, err
	}
	id, ok := info.BTFID()
	if !ok || id == 0 {
		return nil, nil
	}
	h, err := btf.NewHandleFromID(id)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return h.Spec(nil)
}

// variable returns the offset of a variable in a map of variables.
func variable(types *btf.Spec, name string) (at uint32, ok bool) {
	for t, err := range types.All() {
		section, is := t.(*btf.Datasec)
		if err != nil || !is {
			continue
		}
		for _, v := range section.Vars {
			if v.Type.TypeName() == name {
				return v.Offset, true
			}
		}
	}
	return 0, false
}

// zero sets a variable of 8 bytes to 0.
func zero(m *ebpf.Map, at uint32) error {
	value, err := m.LookupBytes(uint32(0))
	if err != nil {
		return err
	}
	if int(at)+8 > len(value) {
		return fmt.Errorf("offset %d is beyond the value of %d bytes", at, len(value))
	}
	clear(value[at : at+8])
	return m.Put(uint32(0), value)
}

// countCapped returns how many connections are capped, or have a lease with which they may
// become capped.
func countCapped(slots *ebpf.Map, of *btf.Struct) (n int, err error) {
	at := map[string]uint32{}
	for _, m := range of.Members {
		at[m.Name] = m.Offset.Bytes()
	}
	for _, name := range []string{"cookie", "paced", "clamped", "lease_until_ns"} {
		if _, ok := at[name]; !ok {
			return 0, fmt.Errorf("slots have no member %s", name)
		}
	}
	value := make([]byte, slots.ValueSize())
	now := Now()
	for i := range slots.MaxEntries() {
		if err := slots.Lookup(i, value); err != nil {
			return 0, err
		}
		wide := func(name string) uint64 { return binary.NativeEndian.Uint64(value[at[name]:]) }
		word := func(name string) uint32 { return binary.NativeEndian.Uint32(value[at[name]:]) }
		if wide("cookie") != 0 && (word("paced") != 0 || word("clamped") != 0 || time.Duration(wide("lease_until_ns")) > now) {
			n++
		}
	}
	return n, nil
}

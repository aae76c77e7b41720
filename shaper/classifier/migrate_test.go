package classifier

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"headgate.dev/headgate/internal/bpfobj"
)

func needRoot(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("creates eBPF maps: not with -short")
	}
	if os.Geteuid() != 0 {
		t.Skip("requires root (CAP_BPF, CAP_SYS_ADMIN) to create eBPF maps")
	}
}

// u returns an unsigned integer type of a size.
func u(bytes uint32) btf.Type { return &btf.Int{Name: "u", Size: bytes} }

func array(t btf.Type, n uint32) btf.Type { return &btf.Array{Index: u(4), Type: t, Nelems: n} }

type member struct {
	name string
	t    btf.Type
}

// structOf returns a struct type of consecutive members.
func structOf(members ...member) btf.Type {
	s := &btf.Struct{Name: "s"}
	for _, m := range members {
		size, err := btf.Sizeof(m.t)
		if err != nil {
			panic(err)
		}
		s.Members = append(s.Members, btf.Member{Name: m.name, Type: m.t, Offset: btf.Bits(s.Size * 8)})
		s.Size += uint32(size)
	}
	return s
}

// mapSpec returns the spec of a map with these key and value types.
func mapSpec(name string, kind ebpf.MapType, entries uint32, key, value btf.Type) *ebpf.MapSpec {
	s := &ebpf.MapSpec{Name: name, Type: kind, MaxEntries: entries, Key: key, Value: value}
	for t, size := range map[btf.Type]*uint32{key: &s.KeySize, value: &s.ValueSize} {
		n, err := btf.Sizeof(t)
		if err != nil {
			panic(err)
		}
		*size = uint32(n)
	}
	if kind == ebpf.Hash {
		s.Flags = 1 // BPF_F_NO_PREALLOC
	}
	return s
}

func makeMap(t *testing.T, s *ebpf.MapSpec) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// untold returns the spec of the same map in a program without BTF.
func untold(s *ebpf.MapSpec) *ebpf.MapSpec {
	s = s.Copy()
	s.Key, s.Value = nil, nil
	return s
}

// today returns the map specs of the present version.
func today() *ebpf.CollectionSpec {
	conn := structOf(member{"src", array(u(4), 4)}, member{"dst", array(u(4), 4)}, member{"sport", u(2)}, member{"dport", u(2)},
		member{"proto", u(1)}, member{"family", u(1)}, member{"pad", u(2)})
	counter := structOf(member{"packets", u(8)}, member{"bytes", u(8)}, member{"marks", u(8)}, member{"drops", u(8)})
	return &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{
		Assigned:   mapSpec(Assigned, ebpf.Hash, 524288, conn, u(4)),
		ControlMap: mapSpec(ControlMap, ebpf.Array, 1, u(4), structOf(member{"assign_epoch", u(4)}, member{"pad", u(4)})),
		Counters:   mapSpec(Counters, ebpf.PerCPUArray, 64, u(4), counter),
		RuleHits:   mapSpec(RuleHits, ebpf.PerCPUArray, 10, u(4), u(8)),
	}}
}

// take makes a program of the present version inherit old maps, and returns its maps.
func take(t *testing.T, old map[string]*ebpf.Map) (map[string]*ebpf.Map, []migration) {
	t.Helper()
	spec := today()
	in := Inherit(spec, old, nil, true)
	now := map[string]*ebpf.Map{}
	for name, s := range spec.Maps {
		if now[name] = in.Reuse[name]; now[name] == nil {
			now[name] = makeMap(t, s)
		}
	}
	all, err := migrateAll(now, in.Migrate)
	if err != nil {
		t.Fatal(err)
	}
	return now, all
}

// logged captures the log output from here on.
func logged(t *testing.T) *bytes.Buffer {
	var b bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return &b
}

func TestFits(t *testing.T) {
	needRoot(t)
	spec := today().Maps[Assigned]
	conn := spec.Key.(*btf.Struct)
	swapped := structOf(member{"dst", array(u(4), 4)}, member{"src", array(u(4), 4)}, member{"sport", u(2)}, member{"dport", u(2)},
		member{"proto", u(1)}, member{"family", u(1)}, member{"pad", u(2)})
	for _, c := range []struct {
		name string
		have *ebpf.MapSpec
		want string // in the error; "" if it fits
	}{
		{"same", mapSpec(Assigned, ebpf.Hash, 524288, conn, u(4)), ""},
		{"same size, without BTF", untold(mapSpec(Assigned, ebpf.Hash, 524288, conn, u(4))), ""},
		{"longer key", mapSpec(Assigned, ebpf.Hash, 524288, structOf(member{"conn", conn}, member{"zone", u(4)}), u(4)), "44 and 4 bytes, not 40 and 4"},
		{"longer value", untold(mapSpec(Assigned, ebpf.Hash, 524288, conn, u(8))), "40 and 8 bytes, not 40 and 4"},
		{"other field order", mapSpec(Assigned, ebpf.Hash, 524288, swapped, u(4)), "or their offsets differ"},
		{"other type", func() *ebpf.MapSpec {
			s := mapSpec(Assigned, ebpf.LRUHash, 524288, conn, u(4))
			return s
		}(), "LRUHash"},
		{"fewer entries", mapSpec(Assigned, ebpf.Hash, 1000, conn, u(4)), "MaxEntries"},
	} {
		err := Compatible(spec, makeMap(t, c.have))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestInheritAsIs(t *testing.T) {
	needRoot(t)
	old := map[string]*ebpf.Map{}
	for name, s := range today().Maps {
		old[name] = makeMap(t, s)
	}
	big := today().Maps[Counters]
	big.MaxEntries = 128
	old[Counters] = makeMap(t, big)
	in := Inherit(today(), old, nil, true)
	if len(in.Reuse) != 4 || len(in.Migrate) != 0 {
		t.Errorf("of four maps that fit, %v are reused and %v copied", in.Reuse, in.Migrate)
	}
	in = Inherit(today(), old, map[string]*ebpf.Map{ControlMap: makeMap(t, today().Maps[ControlMap])}, false)
	if in.Reuse[RuleHits] != nil || in.Migrate[RuleHits] != nil {
		t.Error("the hit counters of other rules are kept")
	}
	if in.Reuse[ControlMap] == old[ControlMap] {
		t.Error("the side's own map is used instead of the shared map")
	}
}

// TestCarryAssigned migrates connections of all kinds, as many as a large upgrade has, from
// keys with another field order and values with more fields.
func TestCarryAssigned(t *testing.T) {
	needRoot(t)
	const connections = 100_000
	key := structOf(member{"family", u(1)}, member{"proto", u(1)}, member{"dport", u(2)}, member{"sport", u(2)}, member{"zone", u(2)},
		member{"dst", array(u(1), 16)}, member{"src", array(u(4), 4)})
	type oldKey struct {
		Family, Proto uint8
		DPort, SPort  [2]byte
		Zone          uint16
		Dst, Src      [16]byte
	}
	type oldValue struct{ Classes, Since uint64 }
	old := makeMap(t, mapSpec(Assigned, ebpf.Hash, 524288, key, structOf(member{"classes", u(8)}, member{"since", u(8)})))
	want := map[ConnKey]uint32{}
	var keys []oldKey
	var values []oldValue
	for i := range uint32(2 * connections) {
		k := ConnKey{Proto: uint8(6 + 11*(i%2)), Family: uint8(4 + 2*(i/2%2)), SPort: port(uint16(i)), DPort: port(uint16(i >> 3))}
		binary.BigEndian.PutUint32(k.Src[12:], i)
		binary.BigEndian.PutUint32(k.Dst[12:], ^i)
		want[k] = i | 0x10000
		keys = append(keys, oldKey{k.Family, k.Proto, k.DPort, k.SPort, 0, k.Dst, k.Src})
		values = append(values, oldValue{uint64(i) | 0x10000, uint64(i) << 40})
	}
	if err := PutAll(old, keys, values); err != nil {
		t.Fatal(err)
	}
	log := logged(t)
	begun := time.Now()
	now, _ := take(t, map[string]*ebpf.Map{Assigned: old})
	t.Logf("%d entries in %v", len(want), time.Since(begun))
	got := 0
	err := Each(now[Assigned], func(k ConnKey, classes uint32) {
		if want[k] != classes {
			t.Fatalf("%v has %x, want %x", k.Conn(), classes, want[k])
		}
		got++
	})
	if err != nil || got != len(want) {
		t.Errorf("%d entries of %d were migrated: %v", got, len(want), err)
	}
	if log.Len() > 0 {
		t.Errorf("logged: %s", log)
	}
	// The old table can be read too, before anything is applied.
	got = 0
	err = Each(old, func(k ConnKey, classes uint32) {
		if want[k] == classes {
			got++
		}
	})
	if err != nil || got != len(want) {
		t.Errorf("%d entries of %d can be read in the old table: %v", got, len(want), err)
	}
	if same, err := HasLayout[ConnKey, uint32](old); same || err != nil {
		t.Errorf("an old table is reported as writable: %v", err)
	}
	if same, err := HasLayout[ConnKey, uint32](now[Assigned]); !same || err != nil {
		t.Errorf("a table of the present version is reported as not writable: %v", err)
	}
}

// TestCarryTooLarge: an entry with a class ID that does not fit the new layout is dropped with
// a log message; the other entries are migrated.
func TestCarryTooLarge(t *testing.T) {
	needRoot(t)
	spec := today().Maps[Assigned]
	old := makeMap(t, mapSpec(Assigned, ebpf.Hash, 524288, spec.Key, u(8)))
	if err := PutAll(old, []ConnKey{{Proto: 6}, {Proto: 17}, {Proto: 1}}, []uint64{1, 1 << 32, 3}); err != nil {
		t.Fatal(err)
	}
	log := logged(t)
	now, _ := take(t, map[string]*ebpf.Map{Assigned: old})
	got := map[uint8]uint32{}
	if err := Each(now[Assigned], func(k ConnKey, classes uint32) { got[k.Proto] = classes }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[6] != 1 || got[1] != 3 {
		t.Errorf("migrated entries: %v", got)
	}
	if !strings.Contains(log.String(), "1 connections assigned at run time") {
		t.Errorf("logged: %s", log)
	}
}

// TestCarryCounters: counters keep their values if the map grows and fields become narrower or
// wider, and counts during the program replacement are added.
func TestCarryCounters(t *testing.T) {
	needRoot(t)
	type oldCounter struct {
		Marks, Late    uint32
		Bytes, Packets uint64
	}
	cpus := ebpf.MustPossibleCPU()
	old := map[string]*ebpf.Map{
		Counters: makeMap(t, mapSpec(Counters, ebpf.PerCPUArray, 16, u(4), structOf(member{"marks", u(4)}, member{"late", u(4)}, member{"bytes", u(8)}, member{"packets", u(8)}))),
		RuleHits: makeMap(t, mapSpec(RuleHits, ebpf.PerCPUArray, 10, u(4), structOf(member{"hits", u(4)}))),
		ControlMap: makeMap(t, mapSpec(ControlMap, ebpf.Array, 1, u(4),
			structOf(member{"started_ns", u(8)}, member{"assign_epoch", u(8)}))),
	}
	count := func(id uint32, c oldCounter, hits uint32) {
		t.Helper()
		perCPU, h := make([]oldCounter, cpus), make([]uint32, cpus)
		for i := range cpus {
			perCPU[i], h[i] = c, hits
		}
		if err := old[Counters].Put(id, perCPU); err != nil {
			t.Fatal(err)
		}
		if err := old[RuleHits].Put(id%10, h); err != nil {
			t.Fatal(err)
		}
	}
	count(3, oldCounter{Marks: 7, Late: 9, Bytes: 1 << 40, Packets: 1 << 33}, 5)
	count(15, oldCounter{Marks: 1, Bytes: 2, Packets: 3}, 6)
	if err := old[ControlMap].Put(uint32(0), []uint64{99, 42}); err != nil {
		t.Fatal(err)
	}
	now, all := take(t, old)
	want := func(when string, id, marks, bytes, packets, hits uint64) {
		t.Helper()
		n := uint64(cpus)
		c, err := ReadCounters(now[Counters])
		if err != nil || len(c) != 64 || c[id] != (Counter{packets * n, bytes * n, marks * n, 0}) {
			t.Errorf("%s: class %d counts %+v: %v", when, id, c[id], err)
		}
		h, err := ReadHits(now[RuleHits])
		if err != nil || h[id%10] != hits*n {
			t.Errorf("%s: rule %d counts %v: %v", when, id%10, h, err)
		}
	}
	want("copied", 3, 7, 1<<40, 1<<33, 5)
	want("copied", 15, 1, 2, 3, 6)
	var control Control
	if err := now[ControlMap].Lookup(uint32(0), &control); err != nil || control.AssignEpoch != 42 {
		t.Errorf("control is %+v: %v", control, err)
	}
	// The old program counts between the copy and the replacement, and the new one afterwards.
	count(3, oldCounter{Marks: 8, Late: 9, Bytes: 1<<40 + 100, Packets: 1<<33 + 1}, 7)
	count(15, oldCounter{Marks: 1000, Bytes: 1000, Packets: 1000}, 6)
	later := make([]Counter, cpus)
	for i := range later {
		later[i] = Counter{Packets: 1<<33 + 10, Bytes: 1<<40 + 10, Marks: 7 + 10}
	}
	if err := now[Counters].Put(uint32(3), later); err != nil {
		t.Fatal(err)
	}
	p := &Program{migrations: all, newClassIDs: map[uint32]bool{15: true}}
	p.AddLateCounts()
	p.AddLateCounts() // only once
	want("settled", 3, 18, 1<<40+110, 1<<33+11, 7)
	want("settled, of a new group", 15, 1, 2, 3, 6)
}

// TestLeftBehind: without BTF, maps of the same size are reused, and others are dropped with a
// log message.
func TestLeftBehind(t *testing.T) {
	needRoot(t)
	spec := today()
	conn := spec.Maps[Assigned].Key
	old := map[string]*ebpf.Map{
		Assigned: makeMap(t, untold(mapSpec(Assigned, ebpf.Hash, 524288, conn, u(8)))),
		Counters: makeMap(t, mapSpec(Counters, ebpf.Array, 64, u(4), spec.Maps[Counters].Value)), // not by CPU
		RuleHits: makeMap(t, untold(spec.Maps[RuleHits])),
	}
	if err := PutAll(old[Assigned], []ConnKey{{Proto: 6}}, []uint64{7}); err != nil {
		t.Fatal(err)
	}
	log := logged(t)
	now, _ := take(t, old)
	if now[RuleHits] != old[RuleHits] {
		t.Error("a map of the same size is not reused")
	}
	if err := Each(now[Assigned], func(k ConnKey, classes uint32) { t.Errorf("%v was migrated as %x", k, classes) }); err != nil {
		t.Error(err)
	}
	text := log.String()
	if strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "connections assigned at run time, counters of groups") ||
		!strings.Contains(text, "from 8 to 4 bytes") || !strings.Contains(text, "PerCPUArray") {
		t.Errorf("logged: %s", text)
	}
	// For display an unreadable map has zeros, so that the device can be observed and applied.
	if n, err := ReadAll[uint32](makeMap(t, untold(spec.Maps[RuleHits]))); err != nil || len(n) != 10*ebpf.MustPossibleCPU() {
		t.Errorf("an unreadable map: %v, %v", n, err)
	}
}

// TestGoTypes: the Go types of keys and values have the layout of the programs' types.
func TestGoTypes(t *testing.T) {
	needRoot(t)
	s := today().Maps
	for name, same := range map[string]func(*ebpf.Map) (bool, error){
		Assigned: HasLayout[ConnKey, uint32], Counters: HasLayout[uint32, Counter], ControlMap: HasLayout[uint32, Control], RuleHits: HasLayout[uint32, uint64],
	} {
		if ok, err := same(makeMap(t, s[name])); !ok || err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMapLayoutsOfBytes(t *testing.T) {
	needRoot(t)
	m := makeMap(t, mapSpec("pair", ebpf.Hash, 4, u(4), structOf(member{"b", u(4)}, member{"a", u(2)}, member{"c", u(2)})))
	if err := m.Put(uint32(1), []byte{1, 0, 0, 0, 2, 0, 3, 0}); err != nil {
		t.Fatal(err)
	}
	_, value, err := bpfobj.MapLayouts(m)
	if err != nil {
		t.Fatal(err)
	}
	to, err := bpfobj.LayoutOf(structOf(member{"c", u(1)}, member{"a", u(1)}))
	if err != nil {
		t.Fatal(err)
	}
	tr, err := bpfobj.NewConversion(value, to)
	out := make([]byte, 2)
	if err != nil || !tr.Copy(out, []byte{1, 0, 0, 0, 2, 0, 3, 0}) || hex.EncodeToString(out) != "0302" {
		t.Errorf("%x: %v", out, err)
	}
}

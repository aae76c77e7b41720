package classifier

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// flows is the name of the flow cache map, which is replaced when the rules change.
const flows = "flows"

// flowMACs is the name of the map with the flows' source MAC addresses. The map has one entry
// unless a rule matches on them.
const flowMACs = "flow_macs"

// cacheWays is the associativity of the flow cache (CACHE_WAYS in bpf/cache.h).
const cacheWays = 2

// Names of the maps that are kept when the rules change.
const (
	Assigned   = "assigned"
	Fragments  = "fragments"
	ControlMap = "control"
	Counters   = "counters"
	RuleHits   = "rule_hits"
)

// Config has the parameters of one direction's program.
type Config struct {
	Table        Table
	Rules        int // the number of rules, for the size of their counters
	Generation   uint32
	Default      uint16 // class of the default group
	Control      uint16 // class of control traffic
	LinkHeader   uint32 // 14, or 0 if the device's packets start with the IP header
	In           bool   // the direction, which selects the half of an assignment
	Classes      uint32 // one more than the largest minor number of a group
	ClientRanges map[string]ClientRange
	FlowCache    uint32      // entries, a power of two
	Plan         shaper.Plan // its directions share the assignment table
}

// FlowCacheFor returns the size of the flow cache for a limit: one entry per 10 kbit/s, about
// the smallest rate of the flows that fill a link. An entry has 64 bytes, so the cache takes
// 0.3 to 17 MB per direction.
func FlowCacheFor(limit unit.Rate) uint32 {
	return powerOfTwo(uint64(limit/(10*unit.Kbit)), 4096, 262144)
}

// assignedFor returns the size of the table of connections assigned at run time, which has two
// entries per connection, for the limits of both directions: one connection per 2 kbit/s, at
// least 32,768 and at most 262,144. The hash buckets take 16 bytes per possible entry even if
// the table is empty: 8 MB per device would be 1.5 GB for 200 containers, and a third of the
// time of their configuration.
func assignedFor(p shaper.Plan) uint32 {
	limit := unit.Rate(0)
	for _, t := range []*group.Tree{p.Out, p.In} {
		if t != nil {
			limit += t.Limit
		}
	}
	return powerOfTwo(uint64(limit/unit.Kbit), 65536, 524288)
}

// fragmentsFor returns the size of the table of first fragments, whose later fragments follow
// soon. The kernel allocates entries to processors in blocks of 128, and reclaims only old
// entries from other processors (kernel/bpf/bpf_lru_list.c, LOCAL_FREE_TARGET). With a fixed
// total for all processors, a few processors would evict entries that the next packet needs. An
// entry has about 130 bytes.
func fragmentsFor(cpus int) uint32 { return powerOfTwo(uint64(1024*cpus), 1024, 65536) }

func powerOfTwo(want, least, most uint64) uint32 {
	n := least
	for n < want && n < most {
		n *= 2
	}
	return uint32(n)
}

// Configure writes c into a copy of a program's spec before it is loaded.
func Configure(spec *ebpf.CollectionSpec, c Config) error {
	shapes := make([]Shape, MaxShapes)
	copy(shapes, c.Table.Shapes)
	set := map[string]any{
		"generation": c.Generation, "default_class": uint32(c.Default), "control_class": uint32(c.Control),
		"link_header": c.LinkHeader, "shape_count": uint32(len(c.Table.Shapes)), "shapes": shapes,
		"use_dscp": flag(c.Table.Uses.DSCP), "use_vlan": flag(c.Table.Uses.VLAN),
		"use_pcp": flag(c.Table.Uses.PCP), "use_mark": flag(c.Table.Uses.Mark), "use_cgroup": flag(c.Table.Uses.Cgroup),
		"use_smac": flag(c.Table.Uses.SMAC), "use_xfrm": flag(hasXfrm()),
	}
	var seed [8]byte
	if _, err := rand.Read(seed[:]); err != nil {
		return fmt.Errorf("cannot generate a hash seed for the flow cache: %w", err)
	}
	sets, withMAC := c.FlowCache/cacheWays, uint32(1)
	if c.Table.Uses.SMAC {
		withMAC = sets
	}
	set["cache_seed"], set["cache_mask"] = binary.NativeEndian.Uint64(seed[:])|1, sets-1
	if c.In {
		set["assign_shift"] = uint32(16)
	}
	if err := SetVariables(spec, set); err != nil {
		return err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("cannot count processors: %w", err)
	}
	all := powerOfTwo(uint64(max(c.Classes, LastPlace(c.ClientRanges))), 64, 1<<16) // groups and clients
	for name, entries := range map[string]uint32{
		"rules": uint32(max(1, len(c.Table.Entries))), "cgroups": uint32(max(1, len(c.Table.Cgroups))),
		flows: sets, flowMACs: withMAC, Assigned: assignedFor(c.Plan), Fragments: fragmentsFor(cpus), Counters: powerOfTwo(uint64(c.Classes), 64, 1<<16),
		Allowances: all, budgets: all, RuleHits: uint32(max(1, c.Rules)),
	} {
		if m := spec.Maps[name]; m != nil { // builds before budgets lack some maps
			m.MaxEntries = entries
		}
	}
	SizeClients(spec, c.ClientRanges)
	return nil
}

// SetVariables sets the constants of a program by name.
func SetVariables(spec *ebpf.CollectionSpec, values map[string]any) error {
	for name, v := range values {
		s, ok := spec.Variables[name]
		if !ok {
			return fmt.Errorf("the eBPF object has no constant %q", name)
		}
		if err := s.Set(v); err != nil {
			return fmt.Errorf("cannot set the eBPF constant %q: %w", name, err)
		}
	}
	return nil
}

// hasXfrm reports whether programs can check if a packet has passed IPsec (CONFIG_XFRM). If
// feature detection fails, they do not check.
func hasXfrm() bool {
	return features.HaveProgramHelper(ebpf.SchedCLS, asm.FnSkbGetXfrmState) == nil
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// Fill writes the table into the maps of a loaded collection.
func Fill(c *ebpf.Collection, t Table) error {
	keys, values := make([]FlowKey, 0, len(t.Entries)), make([]Rule, 0, len(t.Entries))
	for k, v := range t.Entries {
		keys, values = append(keys, k), append(values, v)
	}
	if err := PutAll(c.Maps["rules"], keys, values); err != nil {
		return fmt.Errorf("cannot fill the rule table: %w", err)
	}
	ones := make([]uint64, len(t.Cgroups))
	if err := PutAll(c.Maps["cgroups"], t.Cgroups, ones); err != nil {
		return fmt.Errorf("cannot fill the table of cgroups: %w", err)
	}
	return nil
}

// PutAll writes all entries in one system call.
func PutAll[K, V any](m *ebpf.Map, keys []K, values []V) error {
	if len(keys) == 0 {
		return nil
	}
	_, err := m.BatchUpdate(keys, values, nil)
	return err
}

// Maps opens the maps of a loaded program, by name. The maps live as long as the program, so an
// attached filter keeps its state without a process or a file.
func Maps(id ebpf.ProgramID) (map[string]*ebpf.Map, error) {
	prog, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return nil, fmt.Errorf("cannot open eBPF program %d: %w", id, err)
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		return nil, fmt.Errorf("cannot read eBPF program %d: %w", id, err)
	}
	ids, _ := info.MapIDs()
	maps := map[string]*ebpf.Map{}
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		if err != nil {
			Close(maps)
			return nil, fmt.Errorf("cannot open eBPF map %d: %w", id, err)
		}
		mi, err := m.Info()
		if err != nil {
			m.Close()
			Close(maps)
			return nil, fmt.Errorf("cannot read eBPF map %d: %w", id, err)
		}
		maps[mi.Name] = m
	}
	return maps, nil
}

// Close closes maps.
func Close(maps map[string]*ebpf.Map) {
	for _, m := range maps {
		m.Close()
	}
}

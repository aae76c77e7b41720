package classifier

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"unsafe"

	"headgate/group"
)

// MaxShapes is the most different combinations of fields that the rules of one
// direction may use (MAX_SHAPES in bpf/headgate.h).
const MaxShapes = 128

// MaxEntries bounds what the alternatives in the rules multiply to.
const MaxEntries = 1 << 20

// Shape is one combination of fields: ones in Mask where a rule asks.
type Shape struct {
	Mask   FlowKey
	Lowest uint64 // the first rule of this shape
}

// Table is a direction's rules in the form in which a packet is looked up: by
// tuple space search, one hash lookup a shape, however many rules there are.
type Table struct {
	Shapes  []Shape
	Entries map[FlowKey]Rule
	// Cgroups are the ids that rules name.
	Cgroups []uint64
	// Uses tells which fields a flow has to be told apart by.
	Uses struct{ DSCP, VLAN, Mark, Cgroup bool }
}

// Compile builds the table. class gives the minor number of a node, and cgroup
// the id of a path and the paths, among those that the rules name, that lie below.
func Compile(t group.Tree, class func(node int) uint16, cgroup func(path string) (uint64, error)) (Table, error) {
	c := compiler{shapes: map[FlowKey]uint16{}, cgroups: map[string]uint64{}}
	c.table.Entries = map[FlowKey]Rule{}
	for _, r := range t.Rules {
		if path := r.Selector.Cgroup; path != "" {
			id, err := cgroup(path)
			if err != nil {
				return Table{}, err
			}
			c.cgroups[path] = id
		}
	}
	for i, r := range t.Rules {
		if err := c.rule(r.Selector, Rule{Index: uint32(i), Class: uint32(class(r.Node))}); err != nil {
			return Table{}, &RuleError{i, fmt.Errorf("rule %q: %w", r.Selector, err)}
		}
	}
	for _, id := range c.cgroups {
		c.table.Cgroups = append(c.table.Cgroups, id)
	}
	slices.Sort(c.table.Cgroups)
	return c.table, nil
}

// RuleError is a rule for which the table has no room.
type RuleError struct {
	Rule int // index in Tree.Rules
	error
}

func (e *RuleError) Unwrap() error { return e.error }

// Check tells which rule the table would have no room for, without a kernel: the
// ids of cgroups are made up.
func Check(t group.Tree) *RuleError {
	ids := map[string]uint64{}
	_, err := Compile(t, func(int) uint16 { return 0 }, func(path string) (uint64, error) {
		if _, ok := ids[path]; !ok {
			ids[path] = uint64(len(ids) + 1)
		}
		return ids[path], nil
	})
	var r *RuleError
	errors.As(err, &r) // nothing else can fail
	return r
}

var errTooMany = fmt.Errorf("the alternatives in the rules multiply to more than %d: use prefixes and ranges instead of long lists", MaxEntries)

type compiler struct {
	table   Table
	shapes  map[FlowKey]uint16 // mask -> index in table.Shapes
	cgroups map[string]uint64
}

// pattern is a value and the bits of it that count.
type pattern struct{ value, mask FlowKey }

// rule enters every combination of the selector's alternatives.
func (c *compiler) rule(s group.Selector, r Rule) error {
	patterns, tooMany := []pattern{{}}, false
	cross := func(n int, set func(p *pattern, i int) bool) {
		if n == 0 {
			return
		}
		var out []pattern
		for _, p := range patterns {
			for i := range n {
				q := p
				if set(&q, i) {
					out = append(out, q)
				}
			}
			if len(out) > MaxEntries { // before it has taken the memory
				tooMany = true
				return
			}
		}
		patterns = out
	}
	protos := s.Proto
	if len(protos) == 0 && len(s.SPort)+len(s.DPort) > 0 {
		protos = []uint8{group.TCP, group.UDP, group.SCTP}
	}
	cross(len(protos), func(p *pattern, i int) bool { p.value.Proto, p.mask.Proto = protos[i], 0xff; return true })
	cross(len(s.Src), func(p *pattern, i int) bool { return prefix(p, s.Src[i], &p.value.Src, &p.mask.Src) })
	cross(len(s.Dst), func(p *pattern, i int) bool { return prefix(p, s.Dst[i], &p.value.Dst, &p.mask.Dst) })
	if len(s.Src)+len(s.Dst) == 0 && len(protos)+len(s.DSCP) > 0 {
		// Other than IP has neither protocol nor DSCP, and zero in their place.
		cross(2, func(p *pattern, i int) bool { p.value.Family, p.mask.Family = uint8(4+2*i), 0xff; return true })
	}
	if len(s.SPort)+len(s.DPort) > 0 {
		// Later fragments have no ports, and zero in their place.
		cross(1, func(p *pattern, _ int) bool { p.value.DSCP, p.mask.DSCP = hasPorts, hasPorts; return true })
	}
	sports, dports := portMasks(s.SPort), portMasks(s.DPort)
	cross(len(sports), func(p *pattern, i int) bool {
		p.value.SPort, p.mask.SPort = sports[i].value, sports[i].mask
		return true
	})
	cross(len(dports), func(p *pattern, i int) bool {
		p.value.DPort, p.mask.DPort = dports[i].value, dports[i].mask
		return true
	})
	cross(len(s.DSCP), func(p *pattern, i int) bool { p.value.DSCP |= s.DSCP[i]; p.mask.DSCP |= 0x3f; return true })
	cross(len(s.VLAN), func(p *pattern, i int) bool { p.value.VLAN, p.mask.VLAN = s.VLAN[i], 0xffff; return true })
	cross(len(s.Mark), func(p *pattern, i int) bool { p.value.Mark, p.mask.Mark = s.Mark[i], 0xffffffff; return true })
	if s.Cgroup != "" {
		ids := c.below(s.Cgroup)
		cross(len(ids), func(p *pattern, i int) bool { p.value.Cgroup, p.mask.Cgroup = ids[i], ^uint64(0); return true })
		c.table.Uses.Cgroup = true
	}
	c.table.Uses.DSCP = c.table.Uses.DSCP || len(s.DSCP) > 0
	c.table.Uses.VLAN = c.table.Uses.VLAN || len(s.VLAN) > 0
	c.table.Uses.Mark = c.table.Uses.Mark || len(s.Mark) > 0
	if tooMany {
		return errTooMany
	}
	for _, p := range patterns {
		if err := c.enter(p, r); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) enter(p pattern, r Rule) error {
	shape, known := c.shapes[p.mask]
	if !known {
		if len(c.table.Shapes) == MaxShapes {
			return fmt.Errorf("the rules use more than %d different combinations of fields, prefix lengths and port ranges: use fewer kinds of prefix lengths or ranges", MaxShapes)
		}
		// Rules come in order, so the first of a shape is its lowest, and shapes
		// stand in the order of their lowest rules.
		shape = uint16(len(c.table.Shapes))
		c.shapes[p.mask] = shape
		c.table.Shapes = append(c.table.Shapes, Shape{p.mask, uint64(r.Index)})
	}
	key := p.value
	key.Shape = shape
	if _, taken := c.table.Entries[key]; !taken {
		c.table.Entries[key] = r
	}
	if len(c.table.Entries) > MaxEntries {
		return errTooMany
	}
	return nil
}

// below gives the ids of path and of the named cgroups inside it: a packet is
// looked up by the nearest cgroup that any rule names.
func (c *compiler) below(path string) []uint64 {
	var ids []uint64
	for p, id := range c.cgroups {
		if group.Below(p, path) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// prefix sets an address pattern, and is false if the other end is of the other
// IP version.
func prefix(p *pattern, pre netip.Prefix, value, mask *[16]byte) bool {
	addr, family := address(pre.Masked().Addr())
	if p.mask.Family != 0 && p.value.Family != family {
		return false
	}
	p.value.Family, p.mask.Family = family, 0xff
	bits, first := pre.Bits(), 0
	if family == 4 {
		first = 12
	}
	*value = addr
	for i := first; i < 16 && bits > 0; i, bits = i+1, bits-8 {
		mask[i] = 0xff << max(0, 8-bits)
	}
	return true
}

type portMask struct{ value, mask [2]byte }

// portMasks covers ranges with aligned blocks of a power of two: at most 30 a
// range, one for a single port.
func portMasks(ranges []group.PortRange) []portMask {
	var out []portMask
	for _, r := range ranges {
		for first, last := uint32(r.First), uint32(r.Last); first <= last; {
			size := uint32(1)
			for first%(2*size) == 0 && first+2*size-1 <= last && size < 1<<16 {
				size *= 2
			}
			out = append(out, portMask{port(uint16(first)), port(uint16(^(size - 1)))})
			first += size
		}
	}
	slices.SortFunc(out, func(a, b portMask) int {
		return cmp.Or(slices.Compare(a.mask[:], b.mask[:]), slices.Compare(a.value[:], b.value[:]))
	})
	return slices.Compact(out)
}

// Lookup finds the rule for a key as the eBPF program does. The key's Cgroup is
// the nearest one that a rule names.
func (t Table) Lookup(k FlowKey) (Rule, bool) {
	best, found := Rule{Index: RuleDefault}, false
	for i, s := range t.Shapes {
		if s.Lowest > uint64(best.Index) {
			break
		}
		m := k.and(s.Mask)
		m.Shape = uint16(i)
		if r, ok := t.Entries[m]; ok && r.Index < best.Index {
			best, found = r, true
		}
	}
	return best, found
}

const keyWords = int(unsafe.Sizeof(FlowKey{}) / 8)

func (k FlowKey) and(mask FlowKey) FlowKey {
	a, b := (*[keyWords]uint64)(unsafe.Pointer(&k)), (*[keyWords]uint64)(unsafe.Pointer(&mask))
	for i := range a {
		a[i] &= b[i]
	}
	return k
}

package classifier

import (
	"cmp"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"slices"
	"unsafe"

	"headgate.dev/headgate/group"
)

// MaxShapes is the maximum number of different combinations of fields that the rules of one
// direction may use (MAX_SHAPES in bpf/headgate.h).
const MaxShapes = 128

// MaxEntries is the maximum number of table entries to which the alternatives in the rules
// multiply.
const MaxEntries = 1 << 20

// Shape is one combination of fields: Mask has ones where a rule matches.
type Shape struct {
	Mask   FlowKey
	Lowest uint64 // the first rule of this shape
}

// Table is a direction's rules in the form for lookups by tuple space search: one hash lookup
// per shape, independent of the number of rules.
type Table struct {
	Shapes  []Shape
	Entries map[FlowKey]Rule
	// Cgroups lists the IDs of the cgroups that rules name.
	Cgroups []uint64
	// Uses reports which fields, besides addresses and ports, distinguish flows.
	Uses struct{ DSCP, VLAN, PCP, Mark, Cgroup, SMAC bool }
}

// Compile builds the table. class returns the minor number of a node, and cgroup returns the ID
// of a cgroup path.
func Compile(t group.Tree, class func(node int) uint16, cgroup func(path string) (uint64, error)) (Table, error) {
	c := compiler{shapes: map[FlowKey]uint16{}, cgroups: map[string]uint64{}, left: cutBudget}
	c.table.Entries = map[FlowKey]Rule{}
	for _, r := range t.Rules {
		for _, path := range r.Selector.Cgroups() {
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

// RuleError is the error of a rule that exceeds the capacity of the table.
type RuleError struct {
	Rule int // index in Tree.Rules
	error
}

func (e *RuleError) Unwrap() error { return e.error }

// Check returns the rule that exceeds the capacity of the table, or nil. It works without a
// kernel, with made-up cgroup IDs.
func Check(t group.Tree) *RuleError {
	ids := map[string]uint64{}
	_, err := Compile(t, func(int) uint16 { return 0 }, func(path string) (uint64, error) {
		if _, ok := ids[path]; !ok {
			ids[path] = uint64(len(ids) + 1)
		}
		return ids[path], nil
	})
	var r *RuleError
	errors.As(err, &r) // no other error is possible
	return r
}

var errTooMany = fmt.Errorf("the alternatives in the rules multiply to more than %d: use prefixes and ranges instead of long lists", MaxEntries)

type compiler struct {
	table   Table
	shapes  map[FlowKey]uint16 // mask -> index in table.Shapes
	cgroups map[string]uint64
	left    int // of cutBudget
}

// cutBudget limits the work of subtracting exclusions from rules to about a second.
const cutBudget = 1 << 26

// pattern is a value and the mask of its significant bits.
type pattern struct{ value, mask FlowKey }

// rule adds every combination of the selector's alternatives to the table.
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
			if len(out) > MaxEntries { // before memory is exhausted
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
		// Non-IP packets have neither protocol nor DSCP; their keys have zeros instead.
		cross(2, func(p *pattern, i int) bool { p.value.Family, p.mask.Family = uint8(4+2*i), 0xff; return true })
	}
	if len(s.SPort)+len(s.DPort) > 0 {
		// Later fragments have no ports; their keys have zeros instead.
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
	dscps, vlans, pcps := blocks(s.DSCP, 1), blocks(s.VLAN, 16), blocks(s.PCP, 1)
	cross(len(dscps), func(p *pattern, i int) bool { p.value.DSCP |= uint8(dscps[i].First); p.mask.DSCP |= 0x3f; return true })
	cross(len(vlans), func(p *pattern, i int) bool { vlan(p, vlans[i]); return true })
	cross(len(pcps), func(p *pattern, i int) bool { pcp(p, pcps[i]); return true })
	cross(len(s.Mark), func(p *pattern, i int) bool { p.value.Mark, p.mask.Mark = s.Mark[i].Value, s.Mark[i].Mask; return true })
	cross(len(s.SMAC), func(p *pattern, i int) bool {
		p.value.SMAC, p.mask.SMAC = s.SMAC[i].Address, s.SMAC[i].Mask
		return true
	})
	if len(s.Cgroups()) > 0 {
		ids := c.members(s)
		if len(ids) == 0 {
			return nil // no packet can match
		}
		cross(len(ids), func(p *pattern, i int) bool { p.value.Cgroup, p.mask.Cgroup = ids[i], ^uint64(0); return true })
	}
	c.uses(s)
	for _, without := range excluded(s) {
		patterns = c.cut(patterns, without)
		if tooMany = tooMany || c.left < 0 || len(patterns) > MaxEntries; tooMany {
			break
		}
	}
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
		// Rules are added in order, so the first rule of a shape is its lowest, and shapes are
		// in the order of their lowest rules.
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

// uses records which fields distinguish flows.
func (c *compiler) uses(s group.Selector) {
	u := &c.table.Uses
	for _, one := range append([]group.Selector{s}, s.Not...) {
		u.DSCP, u.VLAN, u.PCP = u.DSCP || len(one.DSCP) > 0, u.VLAN || len(one.VLAN) > 0, u.PCP || len(one.PCP) > 0
		u.Mark, u.SMAC = u.Mark || len(one.Mark) > 0, u.SMAC || len(one.SMAC) > 0
		u.Cgroup = u.Cgroup || one.Cgroup != ""
	}
}

// members returns the IDs of the cgroups that match. A packet is looked up by the nearest
// cgroup that any rule names, or by 0 if there is none.
func (c *compiler) members(s group.Selector) []uint64 {
	in := func(path string) bool {
		return (s.Cgroup == "" || path != "" && group.Below(path, s.Cgroup)) &&
			!slices.ContainsFunc(s.Not, func(n group.Selector) bool { return n.Cgroup != "" && path != "" && group.Below(path, n.Cgroup) })
	}
	var ids []uint64
	if in("") {
		ids = append(ids, 0)
	}
	for p, id := range c.cgroups {
		if in(p) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// prefix sets an address pattern. It returns false if the other address is of the other IP
// version.
func prefix(p *pattern, pre netip.Prefix, value, mask *[16]byte) bool {
	addr, family := address(pre.Masked().Addr())
	if p.mask.Family != 0 && p.value.Family != family {
		return false
	}
	p.value.Family, p.mask.Family = family, 0xff
	length, first := pre.Bits(), 0
	if family == 4 {
		first = 12
	}
	*value = addr
	for i := first; i < 16 && length > 0; i, length = i+1, length-8 {
		mask[i] = 0xff << max(0, 8-length)
	}
	return true
}

type portMask struct{ value, mask [2]byte }

// portMasks splits ranges into aligned blocks of a power of two: at most 30 per range, one for
// a single port.
func portMasks(ranges []group.PortRange) []portMask {
	var out []portMask
	for _, b := range blocks(ranges, 2) {
		out = append(out, portMask{port(uint16(b.First)), port(uint16(^(b.Size - 1)))})
	}
	slices.SortFunc(out, func(a, b portMask) int {
		return cmp.Or(slices.Compare(a.mask[:], b.mask[:]), slices.Compare(a.value[:], b.value[:]))
	})
	return slices.Compact(out)
}

func blocks(ranges []group.Range, base uint32) (out []group.Block) {
	for _, r := range ranges {
		out = append(out, r.Blocks(base)...)
	}
	return out
}

func vlan(p *pattern, b group.Block) {
	p.value.VLAN |= uint16(b.First)
	p.mask.VLAN |= vlanID &^ uint16(b.Size-1)
}

func pcp(p *pattern, b group.Block) {
	p.value.VLAN |= tagged | uint16(b.First)<<pcpShift
	p.mask.VLAN |= tagged | pcpMask&^(uint16(b.Size-1)<<pcpShift)
}

// excluded returns the patterns of a selector's exclusions, those with fewer significant bits
// first, which leaves fewer remaining pieces.
func excluded(s group.Selector) (out []pattern) {
	add := func(set func(p *pattern)) {
		var p pattern
		set(&p)
		out = append(out, p)
	}
	// Non-IP packets have neither protocol nor DSCP; their keys have zeros instead.
	ofIP := func(zero bool, set func(p *pattern)) {
		if !zero {
			add(set)
			return
		}
		for _, family := range []uint8{4, 6} {
			add(func(p *pattern) { set(p); p.value.Family, p.mask.Family = family, 0xff })
		}
	}
	for _, n := range s.Not {
		for _, proto := range n.Proto {
			ofIP(proto == 0, func(p *pattern) { p.value.Proto, p.mask.Proto = proto, 0xff })
		}
		for _, b := range blocks(n.DSCP, 2) {
			ofIP(b.First == 0, func(p *pattern) { p.value.DSCP, p.mask.DSCP = uint8(b.First), 0x3f&^uint8(b.Size-1) })
		}
		for _, pre := range n.Src {
			add(func(p *pattern) { prefix(p, pre, &p.value.Src, &p.mask.Src) })
		}
		for _, pre := range n.Dst {
			add(func(p *pattern) { prefix(p, pre, &p.value.Dst, &p.mask.Dst) })
		}
		for _, m := range portMasks(n.SPort) {
			add(func(p *pattern) {
				p.value.DSCP, p.mask.DSCP, p.value.SPort, p.mask.SPort = hasPorts, hasPorts, m.value, m.mask
			})
		}
		for _, m := range portMasks(n.DPort) {
			add(func(p *pattern) {
				p.value.DSCP, p.mask.DSCP, p.value.DPort, p.mask.DPort = hasPorts, hasPorts, m.value, m.mask
			})
		}
		for _, b := range blocks(n.VLAN, 2) {
			add(func(p *pattern) { vlan(p, b) })
		}
		for _, b := range blocks(n.PCP, 2) {
			add(func(p *pattern) { pcp(p, b) })
		}
		for _, m := range n.Mark {
			add(func(p *pattern) { p.value.Mark, p.mask.Mark = m.Value, m.Mask })
		}
		for _, m := range n.SMAC {
			add(func(p *pattern) { p.value.SMAC, p.mask.SMAC = m.Address, m.Mask })
		}
	}
	slices.SortStableFunc(out, func(a, b pattern) int { return cmp.Compare(a.bits(), b.bits()) })
	return out
}

// bits returns the number of significant bits.
func (p pattern) bits() (n int) {
	for _, b := range p.mask.bytes() {
		n += bits.OnesCount8(b)
	}
	return n
}

// cut returns patterns for all keys that the given patterns match and without does not.
func (c *compiler) cut(patterns []pattern, without pattern) (out []pattern) {
	if c.left -= len(patterns); c.left < 0 {
		return nil
	}
	for _, p := range patterns {
		if p.disjoint(without) {
			out = append(out, p)
			continue
		}
		// Cut by digits of four bits: for each digit, the values that differ from without,
		// after the same preceding digits. Cutting by single bits would give four times as many
		// shapes, and cutting by bytes four times as many entries.
		value, mask := without.value.bytes(), without.mask.bytes()
		for _, at := range cutOrder {
			for _, digit := range []byte{0xf0, 0x0f} {
				ask := mask[at] & digit &^ p.mask.bytes()[at]
				if ask == 0 {
					continue
				}
				for v := ask; ; v = (v - 1) & ask { // every value of these bits
					if v != value[at]&ask {
						q := p
						q.value.bytes()[at] |= v
						if q.mask.bytes()[at] |= ask; q.possible() {
							out = append(out, q)
						}
					}
					if v == 0 {
						break
					}
				}
				p.value.bytes()[at] |= value[at] & ask
				p.mask.bytes()[at] |= ask
			}
		}
		if len(out) > MaxEntries {
			return out // before memory is exhausted
		}
	}
	return out
}

// disjoint reports whether no packet matches both patterns.
func (p pattern) disjoint(o pattern) bool {
	value, mask := p.value.bytes(), p.mask.bytes()
	other, otherMask := o.value.bytes(), o.mask.bytes()
	for i := range value {
		if (value[i]^other[i])&mask[i]&otherMask[i] != 0 {
			return true
		}
	}
	return false
}

// possible reports whether an IP version, or none, fits the pattern.
func (p pattern) possible() bool {
	return slices.ContainsFunc([]uint8{0, 4, 6}, func(family uint8) bool { return (family^p.value.Family)&p.mask.Family == 0 })
}

// cutOrder lists the bytes of a key in the order in which patterns are cut: fields that
// others depend on first, and within a field the most significant bits first. The byte order is
// little-endian on all machines that run the programs (gen.sh).
var cutOrder = func() (order []int) {
	var k FlowKey
	up := func(at uintptr, n int) {
		for i := range n {
			order = append(order, int(at)+i)
		}
	}
	down := func(at uintptr, n int) {
		for i := range n {
			order = append(order, int(at)+n-1-i)
		}
	}
	up(unsafe.Offsetof(k.Family), 1)
	up(unsafe.Offsetof(k.Proto), 1)
	up(unsafe.Offsetof(k.DSCP), 1)
	down(unsafe.Offsetof(k.VLAN), 2)
	down(unsafe.Offsetof(k.Mark), 4)
	up(unsafe.Offsetof(k.SMAC), 6)
	up(unsafe.Offsetof(k.SPort), 2)
	up(unsafe.Offsetof(k.DPort), 2)
	up(unsafe.Offsetof(k.Src), 16)
	up(unsafe.Offsetof(k.Dst), 16)
	return order
}()

// Lookup finds the rule for a key as the eBPF program does. The key's Cgroup must be the
// nearest cgroup that a rule names.
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

func (k *FlowKey) bytes() *[unsafe.Sizeof(FlowKey{})]byte {
	return (*[unsafe.Sizeof(FlowKey{})]byte)(unsafe.Pointer(k))
}

func (k FlowKey) and(mask FlowKey) FlowKey {
	a, b := (*[keyWords]uint64)(unsafe.Pointer(&k)), (*[keyWords]uint64)(unsafe.Pointer(&mask))
	for i := range a {
		a[i] &= b[i]
	}
	return k
}

package group

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"slices"
)

// Entries estimates the number of lookup entries that a classifier needs for the selector, or
// slightly more: the product of the list lengths, with ranges split into aligned blocks, and
// with exclusions expressed as everything outside of them.
func (s Selector) Entries() int {
	n := 1.0
	if len(s.Proto) == 0 && len(s.SPort)+len(s.DPort) > 0 {
		n *= 3 // the protocols that have ports
	}
	if len(s.Src)+len(s.Dst) == 0 {
		n *= 2 // IPv4 and IPv6
	}
	not := s.mergedNot()
	for _, f := range s.masks(not) {
		n *= float64(max(1, len(f.values))) * f.rest()
	}
	for _, a := range [][2][]netip.Prefix{{s.Src, not.Src}, {s.Dst, not.Dst}} {
		rest := 1.0
		for _, p := range a[1] {
			rest += perDigit * float64(p.Bits()/digit+3) // plus the IP version
		}
		n *= float64(max(1, len(a[0]))) * rest
	}
	return int(min(n, math.MaxInt32))
}

// Exclusions are expressed as lookups of everything outside of them, digit by digit. Each digit
// has digit bits; perDigit is the number of other values that a digit can have after the same
// preceding digits.
const digit, perDigit = 4, 1<<digit - 1

// fieldMasks describes the values of one field by their masks: the bits that count in each value,
// and in each excluded value.
type fieldMasks struct{ values, excluded []uint64 }

// Extra bits above the bits of a field, in the next digit. They encode whether the packet has
// the field: whether it has ports, or which IP version it is.
const hasPort, hasFamily = 1 << 16, 1 << 8

// masks returns the masks of all fields except addresses and cgroups.
func (s Selector) masks(not Selector) []fieldMasks {
	whole := func(list []uint8) (out []uint64) {
		for _, v := range list {
			if out = append(out, 0xff); v == 0 {
				out[len(out)-1] |= hasFamily
				out = append(out, 0xff|hasFamily)
			}
		}
		return out
	}
	blocks := func(list []Range, base uint32, bits, also, zero uint64) (out []uint64) {
		for _, r := range list {
			for _, b := range r.Blocks(base) {
				if out = append(out, bits&^uint64(b.Size-1)|also); b.First == 0 && zero > 0 {
					out[len(out)-1] |= zero
					out = append(out, out[len(out)-1])
				}
			}
		}
		return out
	}
	marks := func(list []Mark) (out []uint64) {
		for _, m := range list {
			out = append(out, uint64(m.Mask))
		}
		return out
	}
	macs := func(list []MAC) (out []uint64) {
		for _, m := range list {
			out = append(out, binary.BigEndian.Uint64(append([]byte{0, 0}, m.Mask[:]...)))
		}
		return out
	}
	protos := make([]uint64, len(s.Proto))
	for i := range protos {
		protos[i] = 0xff
	}
	if len(s.Proto) == 0 && len(s.SPort)+len(s.DPort) > 0 {
		protos = []uint64{0xff} // already counted by Entries
	}
	return []fieldMasks{
		{protos, whole(not.Proto)},
		{blocks(s.SPort, 2, 0xffff, hasPort, 0), blocks(not.SPort, 2, 0xffff, hasPort, 0)},
		{blocks(s.DPort, 2, 0xffff, hasPort, 0), blocks(not.DPort, 2, 0xffff, hasPort, 0)},
		{blocks(s.DSCP, 1, 0x3f, 0, 0), blocks(not.DSCP, 2, 0x3f, 0, hasFamily)},
		{blocks(s.VLAN, 16, 0xfff, 0, 0), blocks(not.VLAN, 2, 0xfff, 0, 0)},
		{blocks(s.PCP, 1, 7, 0, 0), blocks(not.PCP, 2, 7, 8, 0)},
		{marks(s.Mark), marks(not.Mark)},
		{macs(s.SMAC), macs(not.SMAC)},
	}
}

// mergedNot merges all exclusions into one selector, field by field.
func (s Selector) mergedNot() (not Selector) {
	for n := range s.Not {
		for _, f := range Fields {
			f.add(&not, &s.Not[n])
		}
	}
	return not
}

// rest is the maximum number of patterns that one value expands to because of the exclusions.
// If each mask contains the bits of the masks before it, an exclusion affects a single pattern
// left over from the others, and the numbers add up. Otherwise they multiply.
func (f fieldMasks) rest() float64 {
	sum, product, nested, last := 1.0, 1.0, true, uint64(0)
	for _, m := range f.sorted() {
		n := 0.0
		for at := m; at > 0; at >>= digit {
			if at&(1<<digit-1) != 0 {
				n += perDigit
			}
		}
		sum, product = sum+n, product*n
		nested, last = nested && last&^m == 0, m
	}
	if nested {
		return sum
	}
	return max(1, product)
}

// sorted returns the masks of the exclusions, those with fewer bits first: the order in which
// the classifier processes them.
func (f fieldMasks) sorted() []uint64 {
	return slices.SortedStableFunc(slices.Values(f.excluded), func(a, b uint64) int { return cmp.Compare(bits.OnesCount64(a), bits.OnesCount64(b)) })
}

// distinct returns the distinct masks with which a packet is looked up, and stops once there are
// more than most.
func (f fieldMasks) distinct(most int) []uint64 {
	all := distinct(f.values)
	for _, m := range slices.Compact(f.sorted()) {
		for _, have := range slices.Clone(all) {
			for shift := 0; shift < 64 && len(all) <= most; shift += digit {
				all = append(all, have|m>>shift<<shift)
			}
		}
		all = distinct(all)
	}
	return all
}

// Shape is a combination of fields, prefix lengths and range sizes. Each shape costs the
// classifier one lookup for every packet that is not in the flow cache.
type Shape struct {
	fields   [8]uint64 // masks
	cgroup   bool
	src, dst int // IPv4 prefix length + 1, or -(IPv6 prefix length + 1)
}

// Shapes adds the selector's shapes to into, and stops once there are more than most.
func (s Selector) Shapes(into map[Shape]bool, most int) {
	not := s.mergedNot()
	fields := s.masks(not)
	shape := Shape{cgroup: len(s.Cgroups()) > 0}
	var enter func(i int)
	enter = func(i int) {
		if len(into) > most {
			return
		}
		if i == len(fields) {
			into[shape] = true
			return
		}
		for _, shape.fields[i] = range fields[i].distinct(most) {
			enter(i + 1)
		}
	}
	for _, shape.src = range lengths(s.Src, not.Src) {
		for _, shape.dst = range lengths(s.Dst, not.Dst) {
			if shape.src*shape.dst >= 0 { // otherwise the IP versions differ, and no packet matches
				enter(0)
			}
		}
	}
}

// Block is an aligned part of a range: Size is a power of two, and First is a multiple of Size.
type Block struct{ First, Size uint32 }

// Blocks splits the range into blocks whose sizes are powers of base, which is a power of two
// itself. Base 2 gives at most 30 blocks; base 1 gives one block per number.
func (r Range) Blocks(base uint32) (out []Block) {
	for first, last := uint32(r.First), uint32(r.Last); first <= last; {
		size := uint32(1)
		for base > 1 && first%(base*size) == 0 && first+base*size-1 <= last && size < 1<<16 {
			size *= base
		}
		out = append(out, Block{first, size})
		first += size
	}
	return out
}

// lengths returns the prefix lengths to look up: those of list, and those of the address space
// that remains without the prefixes in not (whole digits, and a last digit that may be
// shorter). Without any prefix, the single length 0 means that the address is not looked up.
func lengths(list, not []netip.Prefix) []int {
	of := func(p netip.Prefix, bits int) int {
		if p.Addr().Is4() {
			return bits + 1
		}
		return -bits - 1
	}
	var all []int
	for _, p := range list {
		all = append(all, of(p, p.Bits()))
	}
	if len(not) > 0 && len(list) == 0 {
		all = append(all, 1, -1) // the IP version alone
	}
	for _, p := range not {
		for bits := 0; bits < p.Bits(); bits += digit {
			all = append(all, of(p, bits))
		}
		all = append(all, of(p, p.Bits()))
	}
	return distinct(all)
}

// distinct returns the distinct values, or the zero value if there are none.
func distinct[T comparable](all []T) (out []T) {
	seen := map[T]bool{}
	for _, v := range all {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	if len(out) == 0 {
		out = make([]T, 1)
	}
	return out
}

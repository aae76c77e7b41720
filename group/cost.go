package group

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"slices"
)

// Entries is how many values a classifier keeps to look the selector up by, or somewhat more: what
// its lists multiply to, with ranges in aligned blocks, and what is excluded as all that is not in
// it.
func (s Selector) Entries() int {
	n := 1.0
	if len(s.Proto) == 0 && len(s.SPort)+len(s.DPort) > 0 {
		n *= 3 // the protocols that have ports
	}
	if len(s.Src)+len(s.Dst) == 0 {
		n *= 2 // the versions of IP
	}
	not := s.notByField()
	for _, f := range s.masks(not) {
		n *= float64(max(1, len(f.values))) * f.rest()
	}
	for _, a := range [][2][]netip.Prefix{{s.Src, not.Src}, {s.Dst, not.Dst}} {
		rest := 1.0
		for _, p := range a[1] {
			rest += perDigit * float64(p.Bits()/digit+3) // and the version
		}
		n *= float64(max(1, len(a[0]))) * rest
	}
	return int(min(n, math.MaxInt32))
}

// What is excluded is looked up by what is not in it, which is taken apart by digits of so many bits:
// for each, the other values that it can have, behind the digits before it.
const digit, perDigit = 4, 1<<digit - 1

// masked are the values of a field, as the bits that count of each, and of those that are excluded.
type masked struct{ values, excluded []uint64 }

// Bits beside those of a field that tell what has it, in the digit above its own: whether there are
// ports, or which version of IP it is.
const hasPort, hasFamily = 1 << 16, 1 << 8

// masks are the fields but addresses and cgroups.
func (s Selector) masks(not Selector) []masked {
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
		protos = []uint64{0xff} // counted by Entries
	}
	return []masked{
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

// notByField joins what is excluded, field by field.
func (s Selector) notByField() (not Selector) {
	for _, n := range s.Not {
		not.Proto, not.Src, not.Dst = append(not.Proto, n.Proto...), append(not.Src, n.Src...), append(not.Dst, n.Dst...)
		not.SPort, not.DPort = append(not.SPort, n.SPort...), append(not.DPort, n.DPort...)
		not.DSCP, not.VLAN, not.PCP = append(not.DSCP, n.DSCP...), append(not.VLAN, n.VLAN...), append(not.PCP, n.PCP...)
		not.Mark, not.SMAC = append(not.Mark, n.Mark...), append(not.SMAC, n.SMAC...)
	}
	return not
}

// rest is the most patterns that one value becomes for what is excluded of it. Where each mask has
// the bits of those before it, what one excludes lies in a single pattern of what the others have
// left, and numbers add up; else they multiply.
func (f masked) rest() float64 {
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

// sorted are the masks of what is excluded, those with few bits first, as a classifier takes them.
func (f masked) sorted() []uint64 {
	return slices.SortedStableFunc(slices.Values(f.excluded), func(a, b uint64) int { return cmp.Compare(bits.OnesCount64(a), bits.OnesCount64(b)) })
}

// kinds are the masks by which a packet is looked up, until there are more than so many.
func (f masked) kinds(most int) []uint64 {
	all := kinds(f.values)
	for _, m := range slices.Compact(f.sorted()) {
		for _, have := range slices.Clone(all) {
			for shift := 0; shift < 64 && len(all) <= most; shift += digit {
				all = append(all, have|m>>shift<<shift)
			}
		}
		all = kinds(all)
	}
	return all
}

// Shape is a combination of fields, prefix lengths and sizes of ranges, each of which costs a
// classifier a look for every packet that it does not know.
type Shape struct {
	fields   [8]uint64 // masks
	cgroup   bool
	src, dst int // 1 and more of IPv4, -1 and less of IPv6
}

// Shapes enters the selector's shapes until there are more than so many.
func (s Selector) Shapes(into map[Shape]bool, most int) {
	not := s.notByField()
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
		for _, shape.fields[i] = range fields[i].kinds(most) {
			enter(i + 1)
		}
	}
	for _, shape.src = range lengths(s.Src, not.Src) {
		for _, shape.dst = range lengths(s.Dst, not.Dst) {
			if shape.src*shape.dst >= 0 { // else no packet goes between the two
				enter(0)
			}
		}
	}
}

// Block is an aligned part of a range: Size is a power of two, and First a multiple of it.
type Block struct{ First, Size uint32 }

// Blocks covers the range with blocks whose sizes are powers of base, itself a power of two: at
// most 30 of base 2. Of base 1 it is every number.
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

// lengths are the lengths of prefixes, and of what is left of them without those that are excluded:
// whole digits, and a last one that may be shorter. Without any prefix, zero is no look at the
// address.
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
		all = append(all, 1, -1) // the version of IP alone
	}
	for _, p := range not {
		for bits := 0; bits < p.Bits(); bits += digit {
			all = append(all, of(p, bits))
		}
		all = append(all, of(p, p.Bits()))
	}
	return kinds(all)
}

// kinds are the values that differ, or zero if there is none.
func kinds[T comparable](all []T) (out []T) {
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

package group

import (
	"math"
	"net/netip"
)

// Entries is how many values a classifier keeps to look the selector up by, or somewhat more: what
// its lists multiply to, with ranges of ports in blocks of a power of two.
func (s Selector) Entries() int {
	n := 1.0
	for _, values := range []int{len(s.Proto), len(s.Src), len(s.Dst), len(blocks(s.SPort)), len(blocks(s.DPort)), len(s.DSCP), len(s.VLAN), len(s.Mark)} {
		n *= float64(max(1, values))
	}
	if len(s.Proto) == 0 && len(s.SPort)+len(s.DPort) > 0 {
		n *= 3 // the protocols that have ports
	}
	if len(s.Src)+len(s.Dst) == 0 {
		n *= 2 // the versions of IP
	}
	return int(min(n, math.MaxInt32))
}

// Shape is a combination of fields, prefix lengths and sizes of port ranges, each of which costs a
// classifier a look for every packet that it does not know.
type Shape struct {
	proto, dscp, vlan, mark, cgroup bool
	src, dst                        int    // 1 and more of IPv4, -1 and less of IPv6
	sport, dport                    uint32 // sizes of blocks
}

// Shapes enters the selector's shapes until there are more than so many.
func (s Selector) Shapes(into map[Shape]bool, most int) {
	for _, src := range lengths(s.Src) {
		for _, dst := range lengths(s.Dst) {
			if src*dst < 0 {
				continue // no packet goes between the two
			}
			for _, sport := range kinds(blocks(s.SPort)) {
				for _, dport := range kinds(blocks(s.DPort)) {
					if len(into) > most {
						return
					}
					into[Shape{
						proto: len(s.Proto)+len(s.SPort)+len(s.DPort) > 0, dscp: len(s.DSCP) > 0, vlan: len(s.VLAN) > 0, mark: len(s.Mark) > 0, cgroup: s.Cgroup != "",
						src: src, dst: dst, sport: sport, dport: dport,
					}] = true
				}
			}
		}
	}
}

// blocks are the sizes of the aligned blocks that cover ranges: at most 30 a range.
func blocks(ranges []PortRange) (sizes []uint32) {
	for _, r := range ranges {
		for first, last := uint32(r.First), uint32(r.Last); first <= last; {
			size := uint32(1)
			for first%(2*size) == 0 && first+2*size-1 <= last && size < 1<<16 {
				size *= 2
			}
			sizes = append(sizes, size)
			first += size
		}
	}
	return sizes
}

func lengths(list []netip.Prefix) []int {
	var all []int
	for _, p := range list {
		if bits := p.Bits() + 1; p.Addr().Is4() {
			all = append(all, bits)
		} else {
			all = append(all, -bits)
		}
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

package group

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// intersect gives the selector that matches what both match, and false if that
// is nothing.
func intersect(a, b Selector) (Selector, bool) {
	out := Selector{}
	ok := both(&out.Proto, a.Proto, b.Proto, same) &&
		both(&out.Src, a.Src, b.Src, narrower) &&
		both(&out.Dst, a.Dst, b.Dst, narrower) &&
		both(&out.SPort, a.SPort, b.SPort, overlap) &&
		both(&out.DPort, a.DPort, b.DPort, overlap) &&
		both(&out.DSCP, a.DSCP, b.DSCP, same) &&
		both(&out.VLAN, a.VLAN, b.VLAN, same) &&
		both(&out.Mark, a.Mark, b.Mark, same)
	switch {
	case a.Cgroup == "" || Below(b.Cgroup, a.Cgroup):
		out.Cgroup = b.Cgroup
	case b.Cgroup == "" || Below(a.Cgroup, b.Cgroup):
		out.Cgroup = a.Cgroup
	default:
		ok = false
	}
	return out, ok
}

// both fills out with the pairwise intersections of two lists of alternatives,
// an empty list standing for everything.
func both[T comparable](out *[]T, a, b []T, meet func(a, b T) (T, bool)) bool {
	switch {
	case len(a) == 0:
		*out = slices.Clone(b)
		return true
	case len(b) == 0:
		*out = slices.Clone(a)
		return true
	}
	for _, x := range a {
		for _, y := range b {
			if z, ok := meet(x, y); ok && !slices.Contains(*out, z) {
				*out = append(*out, z)
			}
		}
	}
	return len(*out) > 0
}

func same[T comparable](a, b T) (T, bool) { return a, a == b }

func narrower(a, b netip.Prefix) (netip.Prefix, bool) {
	if a.Bits() < b.Bits() {
		a, b = b, a
	}
	return a, b.Overlaps(a)
}

func overlap(a, b PortRange) (PortRange, bool) {
	m := PortRange{max(a.First, b.First), min(a.Last, b.Last)}
	return m, cmp.Compare(m.First, m.Last) <= 0
}

// Below tells whether a path is root or lies below it.
func Below(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

func shareFamily(a, b []netip.Prefix) bool {
	return slices.ContainsFunc(a, func(x netip.Prefix) bool {
		return slices.ContainsFunc(b, func(y netip.Prefix) bool { return x.Addr().Is4() == y.Addr().Is4() })
	})
}

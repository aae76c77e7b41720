package group

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// intersect gives the selector that matches what both match, and false if that
// is nothing. What it costs is taken from left; below zero it has stopped early.
// Lists that one of both has alone are shared with the result.
func intersect(a, b Selector, left *int) (Selector, bool) {
	*left--
	out := Selector{}
	ok := both(&out.Proto, a.Proto, b.Proto, same, left) &&
		both(&out.Src, a.Src, b.Src, narrower, left) &&
		both(&out.Dst, a.Dst, b.Dst, narrower, left) &&
		both(&out.SPort, a.SPort, b.SPort, overlap, left) &&
		both(&out.DPort, a.DPort, b.DPort, overlap, left) &&
		both(&out.DSCP, a.DSCP, b.DSCP, same, left) &&
		both(&out.VLAN, a.VLAN, b.VLAN, same, left) &&
		both(&out.Mark, a.Mark, b.Mark, same, left)
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
func both[T comparable](out *[]T, a, b []T, meet func(a, b T) (T, bool), left *int) bool {
	switch {
	case len(a) == 0:
		*out = b
		return true
	case len(b) == 0:
		*out = a
		return true
	}
	if *left -= len(a) * len(b); *left < 0 {
		return false
	}
	seen := map[T]bool{}
	for _, x := range a {
		for _, y := range b {
			if z, ok := meet(x, y); ok && !seen[z] {
				seen[z] = true
				*out = append(*out, z)
			}
		}
	}
	*left -= meetingCosts * len(*out)
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

// shareFamily tells whether two lists have prefixes of one IP version.
func shareFamily(a, b []netip.Prefix) bool {
	is4 := func(p netip.Prefix) bool { return p.Addr().Is4() }
	is6 := func(p netip.Prefix) bool { return !p.Addr().Is4() }
	return slices.ContainsFunc(a, is4) && slices.ContainsFunc(b, is4) || slices.ContainsFunc(a, is6) && slices.ContainsFunc(b, is6)
}

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
		both(&out.DSCP, a.DSCP, b.DSCP, overlap, left) &&
		both(&out.VLAN, a.VLAN, b.VLAN, overlap, left) &&
		both(&out.PCP, a.PCP, b.PCP, overlap, left) &&
		both(&out.Mark, a.Mark, b.Mark, Mark.and, left) &&
		both(&out.SMAC, a.SMAC, b.SMAC, MAC.and, left)
	switch {
	case a.Cgroup == "" || Below(b.Cgroup, a.Cgroup):
		out.Cgroup = b.Cgroup
	case b.Cgroup == "" || Below(a.Cgroup, b.Cgroup):
		out.Cgroup = a.Cgroup
	default:
		ok = false
	}
	out.Not = a.Not
	for _, n := range b.Not {
		if !slices.ContainsFunc(a.Not, n.Equal) {
			out.Not = append(slices.Clip(out.Not), n)
		}
	}
	return out, ok && !out.excluded(left)
}

// excluded tells whether no packet is left that the selector matches, because all values of one of
// its fields are under Not. It does not find every such selector.
func (s Selector) excluded(left *int) bool {
	not, cgroup := s.notByField(), false
	for _, n := range s.Not {
		cgroup = cgroup || n.Cgroup != "" && s.Cgroup != "" && Below(s.Cgroup, n.Cgroup)
	}
	return cgroup || covered(s.Proto, not.Proto, same, left) ||
		covered(s.Src, not.Src, narrower, left) || covered(s.Dst, not.Dst, narrower, left) ||
		covered(s.SPort, joined(not.SPort), overlap, left) || covered(s.DPort, joined(not.DPort), overlap, left) ||
		covered(s.DSCP, joined(not.DSCP), overlap, left) || covered(s.VLAN, joined(not.VLAN), overlap, left) || covered(s.PCP, joined(not.PCP), overlap, left) ||
		covered(s.Mark, not.Mark, Mark.and, left) || covered(s.SMAC, not.SMAC, MAC.and, left)
}

// covered tells whether each of the values lies in one of the others.
func covered[T comparable](values, others []T, meet func(a, b T) (T, bool), left *int) bool {
	if len(values) == 0 || len(others) == 0 {
		return false
	}
	if *left -= len(values) * len(others); *left < 0 {
		return false
	}
	for _, v := range values {
		if !slices.ContainsFunc(others, func(o T) bool { both, ok := meet(v, o); return ok && both == v }) {
			return false
		}
	}
	return true
}

// joined are the ranges in order, with those that overlap or touch as one.
func joined(ranges []Range) (out []Range) {
	ranges = slices.SortedFunc(slices.Values(ranges), func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	for _, r := range ranges {
		if n := len(out); n > 0 && int(r.First) <= int(out[n-1].Last)+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
		} else {
			out = append(out, r)
		}
	}
	return out
}

func (m Mark) and(o Mark) (Mark, bool) {
	return Mark{m.Value | o.Value, m.Mask | o.Mask}, (m.Value^o.Value)&m.Mask&o.Mask == 0
}

func (m MAC) and(o MAC) (both MAC, ok bool) {
	for i := range m.Address {
		if (m.Address[i]^o.Address[i])&m.Mask[i]&o.Mask[i] != 0 {
			return both, false
		}
		both.Address[i], both.Mask[i] = m.Address[i]|o.Address[i], m.Mask[i]|o.Mask[i]
	}
	return both, true
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

func overlap(a, b Range) (Range, bool) {
	m := Range{max(a.First, b.First), min(a.Last, b.Last)}
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

package group

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// intersect returns the selector that matches the packets that both a and b match, and false if
// there are none. Its cost is subtracted from left; if left falls below zero, intersect has
// stopped early. Lists that only one of both selectors has are shared with the result.
func intersect(a, b Selector, left *int) (Selector, bool) {
	*left--
	out := Selector{}
	for _, f := range Fields {
		if !f.intersect(&out, &a, &b, left) {
			return out, false
		}
	}
	out.Not = a.Not
	for _, n := range b.Not {
		if !slices.ContainsFunc(a.Not, n.Equal) {
			out.Not = append(slices.Clip(out.Not), n)
		}
	}
	return out, !out.excluded(left)
}

// excluded reports whether no packet can match, because all values of one field are also under
// Not. It does not detect every such selector.
func (s Selector) excluded(left *int) bool {
	return slices.ContainsFunc(Fields, func(f *Field) bool { return f.excluded(&s, left) })
}

// covered reports whether each of the values lies in one of the others.
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

// mergeRanges returns the ranges in order, with overlapping and adjacent ranges merged.
func mergeRanges(ranges []Range) (out []Range) {
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

// intersectLists sets out to the pairwise intersections of two lists of alternatives. An empty list
// matches everything.
func intersectLists[T comparable](out *[]T, a, b []T, meet func(a, b T) (T, bool), left *int) bool {
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
	*left -= intersectValueCost * len(*out)
	return len(*out) > 0
}

func intersectEqual[T comparable](a, b T) (T, bool) { return a, a == b }

func intersectPrefixes(a, b netip.Prefix) (netip.Prefix, bool) {
	if a.Bits() < b.Bits() {
		a, b = b, a
	}
	return a, b.Overlaps(a)
}

func intersectRanges(a, b Range) (Range, bool) {
	m := Range{max(a.First, b.First), min(a.Last, b.Last)}
	return m, cmp.Compare(m.First, m.Last) <= 0
}

// Below reports whether path is root or lies below root.
func Below(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// shareFamily reports whether two lists have prefixes of a common IP version.
func shareFamily(a, b []netip.Prefix) bool {
	is4 := func(p netip.Prefix) bool { return p.Addr().Is4() }
	is6 := func(p netip.Prefix) bool { return !p.Addr().Is4() }
	return slices.ContainsFunc(a, is4) && slices.ContainsFunc(b, is4) || slices.ContainsFunc(a, is6) && slices.ContainsFunc(b, is6)
}

package bottleneck

import (
	"slices"

	"headgate.dev/headgate/fabric"
)

// join replaces lists of suspects that have one link in common, and only that, by one finding in which it is Likely: the one weak link that explains
// them all. Two of the lists must share nothing else. Where several links would do, or more than one weak link is needed, the lists stay.
//
// Lists with a common suspect have the same rate: what the suspect gives is no less than either, and no more.
func join(lists []Finding) (out []Finding) {
	for _, part := range connected(lists) {
		link, ok := only(part)
		if !ok {
			out = append(out, part...)
			continue
		}
		f := Finding{Likely: link}
		for _, p := range part {
			f.Links, f.Rate = append(f.Links, p.Links...), max(f.Rate, p.Rate)
		}
		slices.SortFunc(f.Links, fabric.LinkID.Compare)
		f.Links = slices.Compact(f.Links)
		out = append(out, f)
	}
	return out
}

// connected divides lists into those that are connected by common suspects.
func connected(lists []Finding) (parts [][]Finding) {
	for _, f := range lists {
		with := []Finding{f}
		parts = slices.DeleteFunc(parts, func(part []Finding) bool {
			joins := slices.ContainsFunc(part, func(p Finding) bool { return len(common(p.Links, f.Links)) > 0 })
			if joins {
				with = append(with, part...)
			}
			return joins
		})
		parts = append(parts, with)
	}
	return parts
}

// only returns the one link that lists have in common, if two of them have nothing else in common.
func only(lists []Finding) (link fabric.LinkID, ok bool) {
	all := lists[0].Links
	for _, f := range lists {
		all = common(all, f.Links)
	}
	if len(all) != 1 {
		return link, false
	}
	for i, a := range lists {
		for _, b := range lists[:i] {
			if len(common(a.Links, b.Links)) == 1 {
				return all[0], true
			}
		}
	}
	return link, false
}

// common returns the links that are in both lists.
func common(a, b []fabric.LinkID) (both []fabric.LinkID) {
	for _, l := range a {
		if slices.Contains(b, l) {
			both = append(both, l)
		}
	}
	return both
}

package bottleneck

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// line returns the links of n switches in a row.
func line(n int) (links []fabric.LinkID) {
	for i := range n - 1 {
		links = append(links, fabric.LinkID{From: fabric.PortID{Switch: fabric.DPID(i + 1), Port: 2}, To: fabric.PortID{Switch: fabric.DPID(i + 2), Port: 1}})
	}
	return links
}

func TestFind(t *testing.T) {
	l := line(6)
	capacity := func(id fabric.LinkID) unit.Rate {
		return map[fabric.LinkID]unit.Rate{l[0]: 100, l[1]: 100, l[2]: 100, l[3]: 60}[id] * unit.Mbit // that of l[4] is not known
	}
	at := func(rate unit.Rate, links ...fabric.LinkID) Measurement {
		return Measurement{Path: links, Rate: rate * unit.Mbit}
	}
	atLeast := func(rate unit.Rate, links ...fabric.LinkID) Measurement {
		return Measurement{Path: links, Rate: rate * unit.Mbit, AtLeast: true}
	}
	for name, c := range map[string]struct {
		measured []Measurement
		want     []Finding
	}{
		"one link in common":                   {[]Measurement{at(60, l[0], l[1]), at(61, l[1], l[2])}, []Finding{{l[:3], 60 * unit.Mbit, l[1]}}},
		"two links in common":                  {[]Measurement{at(60, l[0], l[1], l[2]), at(61, l[1], l[2])}, []Finding{{Links: l[1:3], Rate: 60 * unit.Mbit}, {Links: l[:3], Rate: 60 * unit.Mbit}}},
		"each two have one in common":          {[]Measurement{at(60, l[0], l[1]), at(60, l[1], l[2]), at(60, l[0], l[2])}, []Finding{{Links: l[:2], Rate: 60 * unit.Mbit}, {Links: []fabric.LinkID{l[0], l[2]}, Rate: 60 * unit.Mbit}, {Links: l[1:3], Rate: 60 * unit.Mbit}}},
		"two that agree, and one between them": {[]Measurement{at(60, l[0], l[1]), at(60, l[1], l[2]), atLeast(80, l[1]), at(99, l[0]), at(99, l[2])}, []Finding{{Links: l[1:2], Rate: 60 * unit.Mbit}}},
		"one against one":                      {[]Measurement{at(60, l[0], l[1]), atLeast(80, l[1]), at(99, l[0])}, nil},
		"two against two":                      {[]Measurement{at(60, l[0], l[1]), at(60, l[1], l[2]), atLeast(80, l[1]), atLeast(80, l[1]), at(99, l[0]), at(99, l[2])}, nil},
		"two that agree against either of two": {[]Measurement{at(60, l[0], l[1]), at(60, l[0], l[1]), atLeast(80, l[1]), at(99, l[0])}, nil},

		"nothing":                          {nil, nil},
		"as it should be":                  {[]Measurement{at(99, l[0], l[1], l[2]), at(96, l[0])}, nil},
		"one link":                         {[]Measurement{at(60, l[0])}, []Finding{{Links: l[:1], Rate: 60 * unit.Mbit}}},
		"the others are known":             {[]Measurement{at(60, l[0], l[1], l[2]), at(99, l[0], l[1])}, []Finding{{Links: l[2:3], Rate: 60 * unit.Mbit}}},
		"one of two":                       {[]Measurement{at(60, l[0], l[1], l[2]), at(99, l[0])}, []Finding{{Links: l[1:3], Rate: 60 * unit.Mbit}}},
		"two of the same are one":          {[]Measurement{at(60, l[1]), at(61, l[1]), at(60, l[1], l[2])}, []Finding{{Links: l[1:2], Rate: 60 * unit.Mbit}}},
		"the median of three":              {[]Measurement{at(60, l[1]), at(61, l[1]), at(62, l[1])}, []Finding{{Links: l[1:2], Rate: 61 * unit.Mbit}}},
		"one direction says nothing":       {[]Measurement{at(60, l[0]), at(99, l[0].Reverse())}, []Finding{{Links: l[:1], Rate: 60 * unit.Mbit}}},
		"no more than a link should give":  {[]Measurement{at(58, l[2], l[3])}, nil},
		"less than a link should give":     {[]Measurement{at(30, l[2], l[3])}, []Finding{{Links: l[2:4], Rate: 30 * unit.Mbit}}},
		"a capacity that is not known":     {[]Measurement{at(30, l[2], l[4])}, nil},
		"it is known to give more":         {[]Measurement{at(30, l[2], l[4]), at(50, l[4])}, []Finding{{Links: l[2:3], Rate: 30 * unit.Mbit}}},
		"at least":                         {[]Measurement{atLeast(60, l[0])}, nil},
		"at least for others":              {[]Measurement{at(60, l[0], l[1]), atLeast(80, l[1])}, []Finding{{Links: l[:1], Rate: 60 * unit.Mbit}}},
		"a weaker one hides behind it":     {[]Measurement{at(40, l[0], l[1]), at(60, l[1])}, []Finding{{Links: l[:1], Rate: 40 * unit.Mbit}, {Links: l[1:2], Rate: 60 * unit.Mbit}}},
		"an error of measuring is no find": {[]Measurement{at(60, l[0], l[1]), at(62, l[1])}, []Finding{{Links: l[1:2], Rate: 60 * unit.Mbit}}},
	} {
		if got := Find(capacity, c.measured); !slices.EqualFunc(got, c.want, func(a, b Finding) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// explanations returns the smallest sets of links of which each list of suspects has one, by trying all sets.
func explanations(lists []Finding) (smallest [][]fabric.LinkID) {
	var all []fabric.LinkID
	for _, f := range lists {
		all = append(all, f.Links...)
	}
	slices.SortFunc(all, fabric.LinkID.Compare)
	all = slices.Compact(all)
	for bits := range 1 << len(all) {
		var set []fabric.LinkID
		for i, l := range all {
			if bits&(1<<i) != 0 {
				set = append(set, l)
			}
		}
		if slices.ContainsFunc(lists, func(f Finding) bool { return len(common(f.Links, set)) == 0 }) {
			continue
		}
		if len(smallest) > 0 && len(set) < len(smallest[0]) {
			smallest = nil
		}
		if len(smallest) == 0 || len(set) == len(smallest[0]) {
			smallest = append(smallest, set)
		}
	}
	return smallest
}

// A likely link is in each of the smallest sets of links that explain what was measured, and is the only one that explains its own part. Without it the
// rest needs one link less.
func TestLikelyIsParsimonious(t *testing.T) {
	links := line(8)
	rapid.Check(t, func(r *rapid.T) {
		var lists []Finding
		for range rapid.IntRange(1, 6).Draw(r, "lists") {
			some := rapid.SliceOfNDistinct(rapid.SampledFrom(links), 2, 4, func(l fabric.LinkID) fabric.LinkID { return l }).Draw(r, "suspects")
			slices.SortFunc(some, fabric.LinkID.Compare)
			lists = append(lists, Finding{Links: some, Rate: 60})
		}
		all := explanations(lists)
		for _, f := range join(lists) {
			if f.Likely == (fabric.LinkID{}) {
				continue
			}
			if !slices.Contains(f.Links, f.Likely) {
				r.Errorf("%v is not one of %v", f.Likely, f.Links)
			}
			rest := slices.DeleteFunc(slices.Clone(lists), func(p Finding) bool { return slices.Contains(p.Links, f.Likely) })
			if n := explanations(rest); len(n[0]) != len(all[0])-1 {
				r.Errorf("the rest needs %v, all %v", n[0], all[0])
			}
			for _, set := range all {
				if !slices.Contains(set, f.Likely) {
					r.Errorf("%v explain all as well, without %v", set, f.Likely)
				}
			}
		}
	})
}

// A link that is found gives what was found, and of suspects one does, in a row of switches of which any paths were measured.
func TestFindIsRight(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		links := line(rapid.IntRange(2, 8).Draw(r, "switches"))
		truth := map[fabric.LinkID]unit.Rate{}
		for _, l := range links {
			truth[l] = unit.Rate(rapid.SampledFrom([]int{20, 40, 60, 80, 100}).Draw(r, "gives")) * unit.Mbit
		}
		var all []Measurement
		for range rapid.IntRange(0, 12).Draw(r, "measurements") {
			a := rapid.IntRange(0, len(links)-1).Draw(r, "from")
			b := rapid.IntRange(a, len(links)-1).Draw(r, "to")
			m := Measurement{Path: links[a : b+1], Rate: 100 * unit.Mbit}
			for _, l := range m.Path {
				m.Rate = min(m.Rate, truth[l])
			}
			all = append(all, m)
		}
		if len(believed(all)) != len(all) {
			r.Errorf("not all of %v are believed", all)
		}
		found := Find(func(fabric.LinkID) unit.Rate { return 100 * unit.Mbit }, all)
		for _, f := range found {
			if !slices.ContainsFunc(f.Links, func(l fabric.LinkID) bool { return truth[l] == f.Rate }) {
				r.Errorf("found %v, which give %v", f, truth)
			}
		}
		for _, m := range all {
			if len(m.Path) == 1 && m.Rate < 100*unit.Mbit && !slices.ContainsFunc(found, func(f Finding) bool { return f.Known() && f.Links[0] == m.Path[0] }) {
				r.Errorf("%v was measured by itself, and not found in %v", m, found)
			}
		}
	})
}

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
		"nothing":                          {nil, nil},
		"as it should be":                  {[]Measurement{at(99, l[0], l[1], l[2]), at(96, l[0])}, nil},
		"one link":                         {[]Measurement{at(60, l[0])}, []Finding{{l[:1], 60 * unit.Mbit}}},
		"the others are known":             {[]Measurement{at(60, l[0], l[1], l[2]), at(99, l[0], l[1])}, []Finding{{l[2:3], 60 * unit.Mbit}}},
		"one of two":                       {[]Measurement{at(60, l[0], l[1], l[2]), at(99, l[0])}, []Finding{{l[1:3], 60 * unit.Mbit}}},
		"two of the same are one":          {[]Measurement{at(60, l[1]), at(61, l[1]), at(60, l[1], l[2])}, []Finding{{l[1:2], 61 * unit.Mbit}}},
		"one direction says nothing":       {[]Measurement{at(60, l[0]), at(99, l[0].Reverse())}, []Finding{{l[:1], 60 * unit.Mbit}}},
		"no more than a link should give":  {[]Measurement{at(58, l[2], l[3])}, nil},
		"less than a link should give":     {[]Measurement{at(30, l[2], l[3])}, []Finding{{l[2:4], 30 * unit.Mbit}}},
		"a capacity that is not known":     {[]Measurement{at(30, l[2], l[4])}, nil},
		"it is known to give more":         {[]Measurement{at(30, l[2], l[4]), at(50, l[4])}, []Finding{{l[2:3], 30 * unit.Mbit}}},
		"at least":                         {[]Measurement{atLeast(60, l[0])}, nil},
		"at least for others":              {[]Measurement{at(60, l[0], l[1]), atLeast(80, l[1])}, []Finding{{l[:1], 60 * unit.Mbit}}},
		"a weaker one hides behind it":     {[]Measurement{at(40, l[0], l[1]), at(60, l[1])}, []Finding{{l[:1], 40 * unit.Mbit}, {l[1:2], 60 * unit.Mbit}}},
		"an error of measuring is no find": {[]Measurement{at(60, l[0], l[1]), at(62, l[1])}, []Finding{{l[1:2], 62 * unit.Mbit}}},
	} {
		if got := Find(capacity, c.measured); !slices.EqualFunc(got, c.want, func(a, b Finding) bool { return fmt.Sprint(a) == fmt.Sprint(b) }) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
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

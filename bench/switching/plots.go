package switching

import (
	"fmt"

	"headgate/bench"
)

// titles of what is measured.
var titles = [measures]string{"Busy processors", "VM1 to VM2", "VM2 to PM", "PM to VM1"}

// plots are the seed's figures VI.2 to VI.5 with ours in them, and bars of what is
// beyond.
func plots(claims []bench.Claim) (out []bench.Plot) {
	found := map[string]bench.Claim{}
	for _, c := range claims {
		found[c.ID] = c
	}
	for m := range measures {
		p := bench.Plot{
			File: "seed-" + measureNames[m], Row: "survey", Title: titles[m] + ": the seed's rates", X: "requested (Mbit/s)", Y: "confirmed (Mbit/s)",
			Caption: fmt.Sprintf("The seed's figure VI.%d. Dotted, with crosses: what the seed measured.", 2+m),
		}
		if m == cpu {
			p.Y = "busy (% of a core)"
		}
		for colour, s := range sites {
			if s.joined {
				p.Lines = append(p.Lines, curves(s, m, colour, found)...)
			}
		}
		out = append(out, p)
	}
	return append(out,
		bars(found, "beyond-cpu", "Busy processors beyond the seed's rates", "busy (% of a core)", func(c cell) (float64, bool) {
			claim := found[c.id(measureNames[cpu])]
			return value(claim)
		}),
		bars(found, "beyond-confirmed", "Confirmed beyond the seed's rates, the three hops together", "confirmed (Mbit/s)", func(c cell) (sum float64, ok bool) {
			for m := vm1vm2; m <= pmvm1; m++ {
				v, ok := value(found[c.id(measureNames[m])])
				if !ok {
					return 0, false
				}
				sum += v
			}
			return sum, true
		}))
}

func value(c bench.Claim) (float64, bool) {
	if c.Ours == nil {
		return 0, false
	}
	return *c.Ours, true
}

// curves are a site's, and the seed's if it has that site.
func curves(s site, measure, colour int, found map[string]bench.Claim) (out []bench.Line) {
	ours := bench.Line{Name: s.name, Colour: colour}
	paper := bench.Line{Name: "the seed's " + s.name, Colour: colour, Paper: true}
	if s.seed == seedBridge {
		paper.Name = "the seed's Xen bridge"
	}
	for _, mbit := range seedRates {
		x := float64(mbit)
		c := cell{s, load{id: fmt.Sprintf("%dMbit", mbit), mbit: x}}
		if v, ok := value(found[c.id(measureNames[measure])]); ok {
			ours.X, ours.Y = append(ours.X, x), append(ours.Y, v)
		}
		if s.seed >= 0 {
			paper.X, paper.Y = append(paper.X, x), append(paper.Y, seedMeans[mbit][s.seed][measure])
		}
	}
	for _, l := range []bench.Line{ours, paper} {
		if len(l.X) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// bars are every site's at the loads beyond the seed's.
func bars(found map[string]bench.Claim, file, title, y string, of func(cell) (float64, bool)) bench.Plot {
	p := bench.Plot{File: file, Row: "survey", Title: title, Y: y, Caption: "Requested on each hop.", Bars: &bench.Bars{}}
	beyondIDs := []string{}
	for _, mbit := range beyond {
		beyondIDs = append(beyondIDs, fmt.Sprintf("%dMbit", mbit))
	}
	beyondIDs = append(beyondIDs, unlimitedID)
	p.Bars.Groups = beyondIDs
	for _, s := range sites {
		set := bench.BarSet{Name: s.name}
		for _, id := range beyondIDs {
			v, ok := of(cell{s, load{id: id}})
			if !ok {
				v = -1 // there is none
			}
			set.Values = append(set.Values, v)
		}
		p.Bars.Sets = append(p.Bars.Sets, set)
	}
	return p
}

package switching

import (
	"fmt"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
)

// titles of the measures.
var titles = [measures]string{"Processor time", "VM1 to VM2", "VM2 to PM", "PM to VM1"}

// plots are the thesis's figures VI.2 to VI.5 with the measured values, and bars of higher rates.
func plots(claims []bench.Claim) (out []plot.Plot) {
	found := map[string]bench.Claim{}
	for _, c := range claims {
		found[c.ID] = c
	}
	for m := range measures {
		p := plot.Plot{
			File: "seed-" + measureNames[m], Row: "survey", Title: titles[m] + ": rates of the thesis", X: "requested (Mbit/s)", Y: "confirmed (Mbit/s)",
			Caption: fmt.Sprintf("Figure VI.%d of the thesis. Dotted, with crosses: the values of the thesis.", 2+m),
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
	out = append(out, processors(found))
	for _, id := range beyondIDs() {
		out = append(out, throughput(found, id))
	}
	return out
}

// beyondIDs are the loads above those of the thesis, for all sites.
func beyondIDs() (ids []string) {
	for _, mbit := range beyond {
		ids = append(ids, fmt.Sprintf("%dMbit", mbit))
	}
	return append(ids, unlimitedID)
}

func value(c bench.Claim) (float64, bool) {
	if c.Ours == nil {
		return 0, false
	}
	return *c.Ours, true
}

// curves are a site's, and the thesis's if it has that site.
func curves(s site, measure, colour int, found map[string]bench.Claim) (out []plot.Line) {
	ours := plot.Line{Name: s.name, Colour: colour}
	paper := plot.Line{Name: "thesis: " + s.name, Colour: colour, Paper: true}
	if s.seed == seedBridge {
		paper.Name = "thesis: Xen bridge"
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
	for _, l := range []plot.Line{ours, paper} {
		if len(l.X) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// processors are bars of every site's processor time above the thesis's rates.
func processors(found map[string]bench.Claim) plot.Plot {
	p := plot.Plot{File: "beyond-cpu", Row: "survey", Title: titles[cpu] + " above the thesis's rates", Y: "busy (% of a core)", Caption: "By the requested rate of each hop."}
	p.Bars = bars(beyondIDs(), func(s site, id string) bench.Claim { return found[cell{s, load{id: id}}.id(measureNames[cpu])] })
	return p
}

// throughput is bars of every site's hops under one load.
func throughput(found map[string]bench.Claim, id string) plot.Plot {
	p := plot.Plot{File: "beyond-" + id, Row: "survey", Title: "Confirmed throughput, " + id + " on each hop", Y: "confirmed (Mbit/s)", Caption: "By hop."}
	if id == unlimitedID {
		p.Caption = "By hop: one CUBIC connection each."
	}
	p.Bars = bars(measureNames[vm1vm2:], func(s site, hop string) bench.Claim { return found[cell{s, load{id: id}}.id(hop)] })
	return p
}

func bars(groups []string, of func(s site, group string) bench.Claim) *plot.Bars {
	b := &plot.Bars{Groups: groups}
	for _, s := range sites {
		set := plot.BarSet{Name: s.name}
		for _, g := range groups {
			v, ok := value(of(s, g))
			if !ok {
				v = -1 // not measured
			}
			set.Values = append(set.Values, v)
		}
		b.Sets = append(b.Sets, set)
	}
	return b
}

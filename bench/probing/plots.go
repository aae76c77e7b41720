package probing

import (
	"math"
	"slices"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
)

// distribution is a plot of errors: the fraction of the paths with at most an error of x. A path
// without an estimate is beyond the right end.
func distribution(r *bench.Run, row, file, title string, who map[string]pool) {
	p := plot.Plot{
		File: file, Row: row, Title: title, X: "error (%)", Y: "paths (%)", LogX: true,
		Caption: "Cumulative distribution of errors. Where a line ends below 100 % the other paths had no estimate, or an error above 100 %.",
	}
	for by := range who {
		all := who[by]
		if len(all) == 0 {
			continue
		}
		line := plot.Line{Name: by, Steps: true}
		off := all.answered().each(func(o outcome) float64 { return math.Max(100*o.off, 1e-4) })
		slices.Sort(off)
		for i, v := range off {
			if v <= 100 {
				line.X, line.Y = append(line.X, v), append(line.Y, 100*float64(i+1)/float64(len(all)))
			}
		}
		if len(line.X) > 1 {
			p.Lines = append(p.Lines, line)
		}
	}
	slices.SortFunc(p.Lines, func(a, b plot.Line) int {
		if (a.Name == bench.Ours) != (b.Name == bench.Ours) {
			return bench.Pick(a.Name == bench.Ours, -1, 1)
		}
		return 0
	})
	for i := range p.Lines {
		p.Lines[i].Colour = i
	}
	if len(p.Lines) > 0 {
		r.Plot(p)
	}
}

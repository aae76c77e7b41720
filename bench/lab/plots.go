package lab

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
)

// plots are pictures of the results of several cases.
func plots(claims []bench.Claim) []plot.Plot {
	var out []plot.Plot
	if p, ok := delayPlot(claims); ok {
		out = append(out, p)
	}
	if p, ok := ratePlot(claims); ok {
		out = append(out, p)
	}
	return out
}

// delayPlot draws the error of pings on idle links over the round-trip time.
func delayPlot(claims []bench.Claim) (p plot.Plot, ok bool) {
	type point struct{ rtt, off float64 }
	points := map[string][]point{}
	for _, c := range claims {
		rest, idle := strings.CutPrefix(c.ID, "delay/idle/")
		name, what, _ := strings.Cut(rest, "/")
		rtt, err := time.ParseDuration(name)
		if idle && err == nil && c.Ours != nil {
			points[what] = append(points[what], point{rtt.Seconds() * 1e3, *c.Ours})
		}
	}
	p = plot.Plot{
		File: "delay-idle", Row: "delay", Title: "Pings over idle emulated links", X: "round-trip time (ms)", Y: "deviation from nominal (ms)", LogX: true,
		Caption: "Dashed: the targets of 0.2 ms at the median and 1 ms at p99.",
	}
	for i, promised := range []struct {
		what   string
		target bench.Target
	}{{"p50", delayP50}, {"p99", delayP99}} {
		line, limit := plot.Line{Name: promised.what, Colour: i}, plot.Line{Name: promised.what + " promised", Colour: i, Dashed: true}
		found := points[promised.what]
		slices.SortFunc(found, func(a, b point) int { return cmp.Compare(a.rtt, b.rtt) })
		for _, f := range found {
			line.X, line.Y = append(line.X, f.rtt), append(line.Y, f.off)
			limit.X, limit.Y = append(limit.X, f.rtt), append(limit.Y, promised.target.Value)
		}
		p.Lines = append(p.Lines, line, limit)
		ok = ok || len(found) > 1
	}
	return p, ok
}

// ratePlot draws the deviation of one TCP connection from the maximum of its framing.
func ratePlot(claims []bench.Claim) (p plot.Plot, ok bool) {
	bars := &plot.Bars{Sets: []plot.BarSet{{Name: "headgate"}}}
	for _, c := range claims {
		if name, is := strings.CutPrefix(c.ID, "rate/"); is && c.Ours != nil {
			rate, _, _ := strings.Cut(name, "/") // the round-trip time does not fit below a bar
			bars.Groups = append(bars.Groups, rate)
			bars.Sets[0].Values = append(bars.Sets[0].Values, *c.Ours)
		}
	}
	return plot.Plot{
		File: "rate", Row: "rate", Title: "One TCP connection over one emulated link", X: "rate", Y: "deviation from the maximum of the framing (%)",
		Caption: "At its receiver; the targets are 1 % up to 1 Gbit/s, and 5 % above.", Bars: bars,
	}, len(bars.Groups) > 1
}

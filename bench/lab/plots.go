package lab

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"headgate/bench"
	"headgate/lab/link"
)

// plots are pictures of what several cases found together.
func plots(claims []bench.Claim) []bench.Plot {
	var out []bench.Plot
	if p, ok := delayPlot(claims); ok {
		out = append(out, p)
	}
	if p, ok := ratePlot(claims); ok {
		out = append(out, p)
	}
	return out
}

// delayPlot is how far pings on idle links are off, over the round-trip time.
func delayPlot(claims []bench.Claim) (p bench.Plot, ok bool) {
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
	p = bench.Plot{
		File: "delay-idle", Row: "delay", Title: "Pings over idle emulated links", X: "round-trip time (ms)", Y: "off nominal (ms)", LogX: true,
		Caption: "Dashed is what is promised: 0.2 ms at the median, 1 ms at p99.",
	}
	for i, promised := range []struct {
		what   string
		target bench.Target
	}{{"p50", delayP50}, {"p99", delayP99}} {
		line, limit := bench.Line{Name: promised.what, Colour: i}, bench.Line{Name: promised.what + " promised", Colour: i, Dashed: true}
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

// ratePlot is how far one TCP connection is off what framing allows.
func ratePlot(claims []bench.Claim) (p bench.Plot, ok bool) {
	bars := &bench.Bars{Sets: []bench.BarSet{{Name: "headgate"}}}
	for _, c := range claims {
		if name, is := strings.CutPrefix(c.ID, "rate/"); is && c.Ours != nil {
			rate, _, _ := strings.Cut(name, "/ip")
			bars.Groups = append(bars.Groups, strings.ReplaceAll(rate, "/", " "))
			bars.Sets[0].Values = append(bars.Sets[0].Values, *c.Ours)
		}
	}
	return bench.Plot{
		File: "rate", Row: "rate", Title: "One TCP connection over one emulated link", X: "rate and round-trip time", Y: "off what framing allows (%)",
		Caption: "At its receiver; 1 % is promised up to 1 Gbit/s, 5 % above.", Bars: bars,
	}, len(bars.Groups) > 1
}

// releases is the rate at which a log lets packets go from begin on, in bins.
func releases(log []link.Result, begin int64, bin, length time.Duration) (seconds, mbit []float64) {
	n := int(length / bin)
	mbit = make([]float64, n)
	for _, r := range log {
		if i := (r.Released - begin) / int64(bin); r.Fate == link.Delivered && !r.Cross && i >= 0 && i < int64(n) {
			mbit[i] += float64(r.Size) * 8 / bin.Seconds() / 1e6
		}
	}
	for i := range n {
		seconds = append(seconds, float64(i)*bin.Seconds())
	}
	return seconds, mbit
}

// limiterPlots are the limiters whose course is worth seeing: what bin, how much of
// the run, and what the seed says of it.
var limiterPlots = map[string]struct {
	bin, length time.Duration
	caption     string
}{
	"peak":  {20 * time.Millisecond, 4 * time.Second, "The bucket is spent at its peak of 200 Mbit/s, then refilled at 50 (estimation seed, section 4.2.2)."},
	"decay": {2 * time.Millisecond, 200 * time.Millisecond, "From 1 Gbit/s to 600 Mbit/s as the bucket empties, then at once to 65 (section 4.5.1, figure 4.8)."},
	"gift":  {20 * time.Millisecond, 8 * time.Second, "Every 2 s tokens come on top (section 4.5.2, figure 4.9: every 20 s)."},
	"xen":   {time.Millisecond, 300 * time.Millisecond, "So many bytes every 15 ms (section 4.5.3, figure 4.10)."},
}

// plotLimiter draws a limiter's course from its log.
func (c queueCase) plotLimiter(r *bench.Run, log []link.Result) {
	p, ok := limiterPlots[c.name]
	if !ok || len(log) == 0 {
		return
	}
	first := log[0].Arrived // the log begins before the traffic does
	for _, l := range log {
		first = min(first, l.Arrived)
	}
	x, y := releases(log, first, p.bin, min(p.length, c.length(r.Quick)))
	r.Plot(bench.Plot{
		File: "queues-" + c.name, Row: "queues", Title: "Released by the limiter \"" + c.name + "\"", X: "time (s)", Y: "Mbit/s, in bins of " + p.bin.String(),
		Caption: p.caption, Lines: []bench.Line{{Name: "headgate", X: x, Y: y, Steps: true}},
	})
}

package groups

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/meter"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func rampBenches(d *bench.Draw) (out []bench.Case) {
	cases := append(rampCases(), drawnRamps(d)...)
	slices.SortStableFunc(cases, func(a, b rampCase) int { return cmp.Compare(turn(a), turn(b)) })
	for _, c := range cases {
		out = append(out, bench.Case{
			Name: "ramp-" + direction(c.in) + "/" + c.name, Claims: c.claims(), Run: c.run, Alongside: c.alongside, Drawn: c.drawn,
			Takes: func(quick bool) time.Duration {
				one := c.timing(quick).length() + overhead
				if c.slow() {
					return one
				}
				return turns(c.together(quick), len(c.limiters(quick))-len(c.variants(quick)), one) + pairs(len(c.variants(quick)), one)
			},
		})
	}
	return out
}

// turn puts the slow settings first, next to each other.
func turn(c rampCase) int {
	if c.slow() {
		return 0
	}
	return 1
}

// alongside: the slow settings use a thousandth of the machine's capacity, or a hundredth where they
// are random. In a smoke run the variants of the middle rate run in parallel, and random cases in
// pairs.
func (c rampCase) alongside(quick bool) string {
	switch {
	case c.slow():
		return slow
	case quick && c.variant && c.drawn == "":
		return "variants"
	case quick && c.variant:
		return c.name
	}
	return ""
}

// together: the peers are measured in parallel, where two of them use a small part of the machine's
// capacity.
func (c rampCase) together(quick bool) bool { return quick || c.limit <= 100*unit.Mbit }

// limiters returns the names of the limiters that are measured. A smoke run has the peers in one
// setting.
func (c rampCase) limiters(quick bool) []string {
	if c.many || quick && !c.slow() && c.name != "100Mbit/tcp-cubic" {
		return []string{bench.Ours}
	}
	return append([]string{bench.Ours, quantumName, plainName}, c.variants(quick)...)
}

// variants returns the variants of the engine quantum that are measured: in the paper's case, where the paper's step is the
// scaled one, and in two at 100 Mbit/s.
func (c rampCase) variants(quick bool) []string {
	switch {
	case c.drawn != "":
	case c.slow():
		return []string{shortName, overdraftName}
	case !quick && (c.name == "100Mbit/tcp-cubic" || c.name == "100Mbit/udp"):
		return []string{fixedName, shortName, overdraftName}
	}
	return nil
}

func (c rampCase) run(ctx context.Context, r *bench.Run) error {
	if c.slow() {
		return alongside(c.limiters(r.Quick), func(name string) error { return c.measure(ctx, r, name) })
	}
	names, measure := c.limiters(r.Quick), func(name string) error { return c.measure(ctx, r, name) }
	variants := len(names) - len(c.variants(r.Quick))
	if err := inTurn(names[:variants], c.together(r.Quick), measure); err != nil {
		return err
	}
	return inPairs(names[variants:], measure)
}

func (c rampCase) measure(ctx context.Context, r *bench.Run, name string) error {
	t := c.timing(r.Quick)
	p, err := plan(groupsOf(c.limit, c.guarantees()), c.in)
	if err != nil {
		return err
	}
	rig := lab.RigOptions{RTT: c.rtt}
	if c.upstream {
		rig.In, rig.Bottleneck = true, c.limit*101/100
	}
	f, err := trial{
		rig: rig, limiter: name, plan: p, flows: c.flows(t), length: t.length(),
		sample: t.sample(), bin: 10 * time.Millisecond,
	}.run(ctx)
	sheet := r.Sheet(name)
	if err != nil {
		return peerError(sheet, err)
	}
	c.judge(sheet, f, t)
	if name == bench.Ours && !c.many || c.name == "100Mbit/tcp-cubic" || c.seedTime {
		r.Plot(c.plot(name, f, t))
	}
	return nil
}

// judge sets the values of the claims.
func (c rampCase) judge(s *bench.Sheet, f *found, t rampTiming) {
	worst, worstCV := math.Inf(1), 0.0
	raw := map[string]rampRecord{}
	var delivered float64
	for i := range seedShares {
		name := groupName(i)
		series := f.arrivals[name]
		s.Set(c.ramp(name), 100*series.Rate(t.begins(), t.ends())/c.due(i))
		bins := rates(series, t.begins(), t.ends(), t.bin)
		for _, v := range bins {
			worst = min(worst, 100*v/c.due(i))
		}
		cv := variation(bins)
		worstCV = max(worstCV, cv)
		flow := f.traffic.Flow(name)
		over, warm := flow.Between(t.begins(), t.ends()), flow.Between(t.warm(), t.ends())
		// What was read after the end had arrived before, except for what arrived after the end.
		all := flow.Between(t.begins(), t.length())
		delivered += all.DeliveredL2Bits - 8*float64(series.Sum(t.ends(), t.length()))

		raw[name] = rampRecord{
			Congestion: flow.Congestion, BinSeconds: t.bin.Seconds(), Overload: bins, Variation: cv, IntervalSeconds: t.sample().Seconds(),
			LostOrResent: over.Retransmits + over.LostDatagrams,
		}.with(flow.Intervals)
		for _, in := range inside {
			if i == in && c.drawn == "" {
				s.Set(c.covetous(i), float64(warm.Retransmits+warm.LostDatagrams))
			}
		}
	}
	s.Set(c.ramp("worst-second"), worst)
	s.Set(c.ramp("total"), 100*delivered/t.overload.Seconds()/float64(c.limit))
	if c.drawn == "" {
		s.Set(c.steady(), worstCV)
	}
	if c.papers() {
		c.judgeAsPaper(s, f, t)
	}
	s.Keep("groups", raw)
	s.Keep("offloads", f.offloads)
	if f.state == nil {
		return
	}
	counted := countersOf(f.state, c.in)
	s.Keep("engine", counted)
	if c.drawn != "" {
		return
	}
	for _, i := range inside {
		for _, g := range counted.Groups {
			if g.Path == groupName(i) {
				s.Note(c.covetous(i), "the engine itself dropped %d of the group's packets in the whole run; other retransmissions are due to TCP's timers", g.Drops)
			}
		}
	}
}

// judgeAsPaper sets the values that the paper has as well: retransmissions since the limit is reached,
// and variation in bins of 1 s.
func (c rampCase) judgeAsPaper(s *bench.Sheet, f *found, t rampTiming) {
	for _, i := range inside {
		flow := f.traffic.Flow(groupName(i)).Between(fullLevel*t.step, t.ends())
		s.Set(c.sinceFull(i), float64(flow.Retransmits+flow.LostDatagrams))
	}
	worst := 0.0
	for i := range seedShares {
		worst = max(worst, variation(rates(f.arrivals[groupName(i)], t.begins(), t.ends(), time.Second)))
	}
	s.Set(c.steadySeconds(), worst)
}

// rampRecord is the stored result of one group. Rates are in bit/s.
type rampRecord struct {
	Congestion      string    `json:"congestion,omitempty"`
	BinSeconds      float64   `json:"bin_s"`
	Overload        []float64 `json:"overload_arrivals"` // in bins
	Variation       float64   `json:"variation"`
	LostOrResent    uint64    `json:"lost_or_resent_in_overload"`
	IntervalSeconds float64   `json:"interval_s"`
	Delivered       []float64 `json:"delivered"` // in intervals, as full frames
	Resent          []uint64  `json:"lost_or_resent"`
}

func (r rampRecord) with(intervals []traffic.Interval) rampRecord {
	for _, iv := range intervals {
		r.Delivered = append(r.Delivered, math.Round(iv.DeliveredRate()))
		r.Resent = append(r.Resent, iv.Retransmits+iv.LostDatagrams)
	}
	return r
}

// rates returns the mean rates over [from, to) in bins, without an incomplete last one.
func rates(s meter.Series, from, to, bin time.Duration) (out []float64) {
	for at := from; at+bin <= to; at += bin {
		out = append(out, s.Rate(at, at+bin))
	}
	return out
}

// variation returns the standard deviation divided by the mean.
func variation(v []float64) float64 {
	if len(v) < 2 {
		return 0
	}
	var mean, square float64
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		square += (x - mean) * (x - mean)
	}
	if mean == 0 {
		return math.NaN()
	}
	return math.Sqrt(square/float64(len(v)-1)) / mean
}

// plot draws rates over time, and guarantees.
func (c rampCase) plot(name string, f *found, t rampTiming) plot.Plot {
	scale, label := scaled(c.limit)
	bin := max(t.ends()/150, 10*time.Millisecond).Round(10 * time.Millisecond)
	if c.slow() {
		bin = max(bin, 2*time.Second)
	}
	p := plot.Plot{
		File: file("ramp", direction(c.in), c.name, name), Row: "ramp-" + direction(c.in),
		Title:   fmt.Sprintf("%s, %s: %s", strings.ReplaceAll(c.name, "/", ", "), direction(c.in), name),
		Caption: fmt.Sprintf("Arrivals in bins of %v. Dashed: the rate that each group must have in the overload, min(offered, guarantee).", bin),
		X:       "time (s)", Y: "layer-2 rate (" + label + ")", YMax: 0.45 * float64(c.limit) / scale,
	}
	for i := range seedShares {
		l := plot.Line{Name: fmt.Sprintf("%s (guaranteed %v)", groupName(i), c.guarantees()[i]), Colour: i, Steps: true}
		for at := time.Duration(0); at+bin <= t.ends(); at += bin {
			l.X = append(l.X, at.Seconds())
			l.Y = append(l.Y, f.arrivals[groupName(i)].Rate(at, at+bin)/scale)
		}
		p.Lines = append(p.Lines, l, plot.Level("", c.due(i)/scale, t.begins().Seconds(), t.ends().Seconds(), i))
		if c.papers() {
			name := ""
			if i == 0 {
				name = "the paper's, relative to the limit"
			}
			p.Lines = append(p.Lines, plot.PaperLevel(name, paperRates[i]/100*float64(c.limit)/scale, t.begins().Seconds(), t.ends().Seconds(), i))
		}
	}
	return p
}

// scaled returns the unit for plotting rates of a limit.
func scaled(limit unit.Rate) (float64, string) {
	if limit < 10*unit.Mbit {
		return 1e3, "kbit/s"
	}
	return 1e6, "Mbit/s"
}

// file makes a file name of words.
func file(words ...string) string {
	return strings.NewReplacer("/", "-", " ", "-", "(", "", ")", "", ".", "_").Replace(strings.ToLower(strings.Join(words, "-")))
}

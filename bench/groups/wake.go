package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/plot"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/meter"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// wakeCase is return and lend in one setting: group3 (40 %) alternately sleeps and wakes while the
// others have unlimited demand.
type wakeCase struct {
	in       bool
	limit    unit.Rate
	name     string
	protocol traffic.Protocol
}

func wakeCases() (out []wakeCase) {
	for _, rate := range []struct {
		limit unit.Rate
		name  string
	}{{100 * unit.Mbit, "100Mbit"}, {unit.Gbit, "1000Mbit"}} {
		for _, p := range []traffic.Protocol{traffic.UDP, traffic.TCP} {
			for _, in := range []bool{false, true} {
				out = append(out, wakeCase{in, rate.limit, rate.name + "/" + string(p), p})
			}
		}
	}
	return out
}

// waker is the group that sleeps and wakes.
const waker = 3

const wakeRTT = time.Millisecond

// Chosen by this project. A share is reached at the first bin from which the mean is high enough over
// the next 10 ms, over the next 100 ms, and until the group changes again. 10 ms hold 33 frames of 40
// Mbit/s, so that one frame more or less is within the 5 %. 100 ms exclude a random burst. The rest
// excludes an algorithm that gives at the beginning of each second what it takes back later in it.
const (
	wakeBin   = time.Millisecond
	wakeShort = 10 * time.Millisecond
	wakeLong  = 100 * time.Millisecond
)

// wakeTiming has the times at which group3 wakes and sleeps.
type wakeTiming struct {
	settle, on, off time.Duration
	cycles          int
}

func (t wakeTiming) wakes(n int) time.Duration {
	return t.settle + time.Duration(n)*(t.on+t.off)
}
func (t wakeTiming) sleeps(n int) time.Duration { return t.wakes(n) + t.on }
func (t wakeTiming) ends() time.Duration        { return t.wakes(t.cycles) }

// timing: the paper's algorithm lends 1.5 % of the limit a second, so that it takes some 27 s to lend
// 40 %. It is measured once, with that much time before the group wakes and after it goes to sleep.
func (c wakeCase) timing(quick bool, name string) wakeTiming {
	const ms = time.Millisecond
	switch {
	case quick && isQuantum(name):
		return wakeTiming{1000 * ms, 500 * ms, 2000 * ms, 1}
	case quick:
		return wakeTiming{600 * ms, 400 * ms, 400 * ms, 2}
	case isQuantum(name):
		return wakeTiming{40 * time.Second, 10 * time.Second, 40 * time.Second, 1}
	}
	return wakeTiming{2 * time.Second, time.Second, time.Second, 10}
}

func (c wakeCase) flows(t wakeTiming) []traffic.Flow {
	from, to := ends(c.in)
	flows := make([]traffic.Flow, len(seedShares))
	// With group3 asleep the others' parts are 1/6, 2/6 and 3/6 of the limit; datagrams are offered at
	// a fifth more, all the time.
	greed := []unit.Rate{20, 40, 60}
	for i := range flows {
		flows[i] = traffic.Flow{Name: groupName(i), From: from, To: to, Protocol: c.protocol, DstPort: basePort + uint16(i)}
		rate := traffic.Unlimited
		if c.protocol == traffic.UDP && i != waker {
			rate = greed[i] * c.limit / 100
		} else if c.protocol == traffic.UDP {
			rate = seedShares[i].Of(c.limit) // not more, so that nothing is queued when it sleeps
		}
		if i != waker {
			flows[i].Schedule = traffic.Constant(rate)
			continue
		}
		for n := range t.cycles {
			flows[i].Schedule = append(flows[i].Schedule, traffic.Step{At: t.wakes(n), Rate: rate}, traffic.Step{At: t.sleeps(n)})
		}
	}
	return flows
}

func (c wakeCase) id(row string) string { return fmt.Sprintf("%s/%s/%s", row, c.name, direction(c.in)) }

func (c wakeCase) claims() []bench.Claim {
	back, lend := returnTCP, lendTCP
	if c.protocol == traffic.UDP {
		back, lend = returnUDP, lendUDP
	}
	peers := []string{quantumName, htbName}
	away := bench.NewClaim(c.id("lend"), "time until 95 % of the bandwidth of an idle group is used, median", lend, peers...)
	if c.fixed() {
		peers = append(peers, fixedName)
		away = bench.NewClaim(c.id("lend"), away.Metric, lend, peers...).WithNote(noteFixed)
	}
	return []bench.Claim{
		bench.NewClaim(c.id("return"), "time until a waking group has 95 % of its guarantee, median", back, peers...), away,
	}
}

// fixed reports whether the paper's own step is measured besides the scaled one.
func (c wakeCase) fixed() bool { return c.limit == 100*unit.Mbit }

// isQuantum reports whether it is a variant of the engine quantum.
func isQuantum(name string) bool { return name == quantumName || name == fixedName }

// 40 % of 100 Mbit/s are 5,000,000 bytes a second, of which 1,500 are lent a second.
const noteFixed = "with the paper's step of 1,500 bytes a second the quantum engine needs 56 min to lend 40 % of 100 Mbit/s of payload, and is measured for 40 s"

func (c wakeCase) limiters(quick bool) []string {
	if quick && c.id("") != "/100Mbit/udp/out" && c.id("") != "/100Mbit/tcp/out" {
		return []string{bench.Ours}
	}
	names := []string{bench.Ours, htbName, quantumName}
	if c.fixed() && !quick {
		names = append(names, fixedName)
	}
	return names
}

// light are cases that a smoke run measures together: without peers, at the lower rate.
func (c wakeCase) light() bool { return c.in && c.limit == 100*unit.Mbit }

func wakeBenches() (out []bench.Case) {
	cases := wakeCases()
	slices.SortStableFunc(cases, func(a, b wakeCase) int { return cmp.Compare(last(a.light()), last(b.light())) })
	for _, c := range cases {
		out = append(out, bench.Case{
			Name: "wake" + c.id(""), Claims: c.claims(), Run: c.run,
			Alongside: func(quick bool) string {
				if quick && c.light() {
					return "wake"
				}
				return ""
			},
			Takes: func(quick bool) time.Duration {
				names := c.limiters(quick)
				ours := turns(quick, min(len(names), 2), c.timing(quick, bench.Ours).ends()+overhead)
				if len(names) < 3 {
					return ours
				}
				longest := c.timing(quick, quantumName).ends() + overhead
				if quick {
					return max(ours, ours/2+longest)
				}
				return ours + longest
			},
		})
	}
	return out
}

func (c wakeCase) run(ctx context.Context, r *bench.Run) error {
	p, err := plan(seedGroups(c.limit), c.in)
	if err != nil {
		return err
	}
	var curves []plot.Line
	measure := func(name string) error {
		sheet, t := r.Sheet(name), c.timing(r.Quick, name)
		f, err := trial{
			rig: lab.RigOptions{RTT: wakeRTT}, limiter: name, plan: p, flows: c.flows(t), length: t.ends(), sample: 100 * time.Millisecond, bin: wakeBin,
		}.run(ctx)
		if err != nil {
			return peerError(sheet, err)
		}
		w := c.judge(sheet, f, t)
		if name == bench.Ours {
			for _, p := range c.plots(f, t) {
				r.Plot(p)
			}
		}
		if name == fixedName {
			return nil // a curve at the right edge
		}
		curves = append(curves, cumulative(name+", return", w.back, len(curves)/2, false), cumulative(name+", lend", w.lend, len(curves)/2, true))
		return nil
	}
	names := c.limiters(r.Quick)
	if len(names) > 3 {
		err = errors.Join(inTurn(names[:2], r.Quick, measure), alongside(names[2:], measure))
	} else {
		err = inTurn(names, r.Quick, measure)
	}
	if len(curves) > 0 {
		r.Plot(plot.Plot{
			File: file("times", c.name, direction(c.in)), Row: "return", Title: fmt.Sprintf("return and lend at %s, %s", c.name, direction(c.in)),
			Caption: "Fraction of wakes (dashed: sleeps) after which the share was reached within a time. Times below a bin of 1 ms are drawn at 1 ms.",
			X:       "time (ms, logarithmic)", Y: "fraction", YMax: 1, LogX: true, Lines: curves,
		})
	}
	return err
}

// wakes returns the times until shares were reached, in ms.
type wakes struct{ back, lend []float64 }

func (c wakeCase) judge(s *bench.Sheet, f *found, t wakeTiming) (w wakes) {
	own, others := f.arrivals[groupName(waker)], meter.Series{Bin: wakeBin}
	for i := range seedShares {
		if i != waker {
			others = sum(others, f.arrivals[groupName(i)])
		}
	}
	guarantee := float64(seedShares[waker].Of(c.limit))
	never := [2]int{}
	for n := range t.cycles {
		took, ok := reaches(own, reachedPart*guarantee, t.wakes(n), t.sleeps(n))
		if !ok {
			never[0]++
		}
		w.back = append(w.back, ms(took))
		asleep := t.sleeps(n)
		before := t.wakes(n) + wakeLong // all the time awake, once it has settled
		goal := others.Rate(before, asleep) + reachedPart*own.Rate(before, asleep)
		took, ok = reaches(others, goal, asleep, t.wakes(n+1))
		if !ok {
			never[1]++
		}
		w.lend = append(w.lend, ms(took))
	}
	s.Keep("offloads", f.offloads)
	if f.state != nil && countersOf(f.state, c.in).Quantum != nil {
		c.noteLent(s, countersOf(f.state, c.in), t)
	}
	for i, row := range []struct {
		id       string
		times    []float64
		watched  time.Duration
		untilEnd string
	}{{c.id("return"), w.back, t.on, "awake"}, {c.id("lend"), w.lend, t.off, "asleep"}} {
		s.SetAll(row.id, row.times)
		if t.cycles >= 10 {
			s.Note(row.id, "of %d times the 90th percentile is %s ms", t.cycles, bench.Number(percentile90(row.times)))
		}
		if never[i] > 0 {
			s.Note(row.id, "%d of %d not reached while the group was %s (%v), and counted with that time", never[i], t.cycles, row.untilEnd, row.watched)
		}
	}
	return w
}

// noteLent adds a note on how much group3 has lent at the end, and how long it would take to lend all
// of its idle bandwidth.
func (c wakeCase) noteLent(s *bench.Sheet, d *shaper.DirectionState, t wakeTiming) {
	g, q := d.Groups[waker], d.Quantum
	guarantee := uint64(float64(g.Guarantee) / 8 * q.Quantum.Seconds())
	lent := guarantee - min(g.Quantum.ActualBytes, guarantee)
	all := time.Duration(guarantee/q.StepBytes) * q.Quantum
	s.Note(c.id("lend"), "after %v asleep the group has lent %s %% of its guarantee; with %d bytes of %d a quantum lending all of it takes %v", t.off, bench.Number(100*float64(lent)/float64(guarantee)), q.StepBytes, guarantee, all)
}

// reaches returns the time from after until the series permanently has a rate, or the whole time until
// until.
func reaches(s meter.Series, rate float64, from, until time.Duration) (time.Duration, bool) {
	bin := func(d time.Duration) int { return min(int(d/s.Bin), len(s.Bytes)) }
	sums := make([]float64, len(s.Bytes)+1) // of the bins before
	for i, b := range s.Bytes {
		sums[i+1] = sums[i] + float64(b)
	}
	need := rate / 8 * s.Bin.Seconds()
	holds := func(from, until int) bool { return sums[until]-sums[from] >= need*float64(until-from) }
	last := bin(until)
	for at := bin(from); at+bin(wakeLong) <= last; at++ {
		if holds(at, at+bin(wakeShort)) && holds(at, at+bin(wakeLong)) && holds(at, last) {
			return time.Duration(at)*s.Bin - from, true
		}
	}
	return until - from, false
}

// percentile90 returns the smallest of the times that nine of ten do not exceed.
func percentile90(times []float64) float64 {
	v := slices.Sorted(slices.Values(times))
	return v[(9*len(v)+9)/10-1]
}

// sum adds two series bin by bin.
func sum(a, b meter.Series) meter.Series {
	out := meter.Series{Bin: b.Bin, Bytes: slices.Clone(b.Bytes)}
	for i := range a.Bytes {
		out.Bytes[i] += a.Bytes[i]
	}
	return out
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// plots draw the first wake and the first sleep in 1 ms bins.
func (c wakeCase) plots(f *found, t wakeTiming) []plot.Plot {
	return []plot.Plot{
		c.plot(f, t.wakes(0), "return", "group3 starts to send"),
		c.plot(f, t.sleeps(0), "lend", "group3 stops"),
	}
}

func (c wakeCase) plot(f *found, change time.Duration, row, what string) plot.Plot {
	const before, after = 20 * time.Millisecond, 80 * time.Millisecond
	p := plot.Plot{
		File: file(row, c.name, direction(c.in)), Row: row, Title: fmt.Sprintf("headgate: %s, %s, %s", what, c.name, direction(c.in)),
		Caption: "Arrivals in bins of 1 ms around the first time. Dashed: group3's guarantee.",
		X:       "time since the change (ms)", Y: "layer-2 rate (Mbit/s)", YMax: 1.2 * float64(c.limit) / 1e6,
	}
	own, others := plot.Line{Name: "group3", Colour: 0, Steps: true}, plot.Line{Name: "total of the others", Colour: 1, Steps: true}
	for at := -before; at < after; at += wakeBin {
		rate := 0.0
		for i := range seedShares {
			if i != waker {
				rate += f.arrivals[groupName(i)].Rate(change+at, change+at+wakeBin)
			}
		}
		own.X, others.X = append(own.X, ms(at)), append(others.X, ms(at))
		own.Y = append(own.Y, f.arrivals[groupName(waker)].Rate(change+at, change+at+wakeBin)/1e6)
		others.Y = append(others.Y, rate/1e6)
	}
	p.Lines = []plot.Line{own, others, plot.Level("", float64(seedShares[waker].Of(c.limit))/1e6, ms(-before), ms(after), 0)}
	return p
}

// cumulative returns the distribution function of times.
func cumulative(name string, times []float64, colour int, dashed bool) plot.Line {
	lowest := ms(wakeBin)
	l := plot.Line{Name: name, Colour: colour, Dashed: dashed, Steps: true, X: []float64{lowest}, Y: []float64{0}}
	for i, v := range slices.Sorted(slices.Values(times)) {
		l.X, l.Y = append(l.X, max(v, lowest)), append(l.Y, float64(i+1)/float64(len(times)))
	}
	return l
}

package groups

import (
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// rampCase is the paper's test in one setting.
type rampCase struct {
	in       bool
	limit    unit.Rate
	name     string // of the setting: "100Mbit/tcp-cubic"
	protocol traffic.Protocol
	cc       string // TCP's congestion control
	ipv6     bool
	seedTime bool // the paper's own timing
	variant  bool // another setting at this rate, or random
	upstream bool // a real bottleneck of 101 % upstream of the receiver

	// For a random case: its values, the guarantees, and the path's round-trip time. "" and nil are
	// the paper's.
	drawn  string
	shares []unit.Share
	rtt    time.Duration
	// many: the case is of the row drawn, where only Headgate is measured.
	many bool
}

// guarantees of the groups, relative to the limit.
func (c rampCase) guarantees() []unit.Share {
	if c.shares != nil {
		return c.shares
	}
	return seedShares
}

// drawnRamps are random settings, each in both directions.
func drawnRamps(d *bench.Draw) (out []rampCase) {
	for n := range 2 {
		name := fmt.Sprintf("drawn-%d", n+1)
		out = append(out, drawRamp(d.For("ramp/"+name), name)...)
	}
	return out
}

// drawRamp is one setting in both directions.
func drawRamp(d *bench.Draw, name string) []rampCase {
	c := rampCase{
		name: name, variant: true, limit: d.Rate(800*unit.Kbit, unit.Gbit), shares: d.Shares(len(seedShares), 10*unit.Whole/100),
		rtt: d.Duration(time.Millisecond, 50*time.Millisecond), protocol: traffic.TCP, cc: bench.OneOf(d, "cubic", "bbr", ""),
	}
	what := "TCP " + c.cc
	if c.cc == "" {
		c.protocol, what = traffic.UDP, "UDP"
	}
	c.drawn = fmt.Sprintf("limit %v, guarantees %v, round-trip time %v, %s", c.limit, c.shares, c.rtt, what)
	in := c
	in.in = true
	return []rampCase{c, in}
}

// rampCases are all settings. The slow ones are neighbours, to run in parallel.
func rampCases() (out []rampCase) {
	tcp := func(limit unit.Rate, name, cc string) rampCase {
		return rampCase{limit: limit, name: name, protocol: traffic.TCP, cc: cc}
	}
	const slow, middle, fast = 800 * unit.Kbit, 100 * unit.Mbit, unit.Gbit
	seed := tcp(slow, "0.8Mbit/tcp-cubic-seed-timing", "cubic")
	seed.seedTime = true
	v6 := tcp(middle, "100Mbit/tcp-cubic-ipv6", "cubic")
	v6.ipv6, v6.variant = true, true
	bbr := tcp(middle, "100Mbit/tcp-bbr", "bbr")
	bbr.variant = true
	settings := []rampCase{
		tcp(slow, "0.8Mbit/tcp-cubic", "cubic"), seed,
		tcp(middle, "100Mbit/tcp-cubic", "cubic"), bbr, v6,
		{limit: middle, name: "100Mbit/udp", protocol: traffic.UDP, variant: true},
		tcp(fast, "1000Mbit/tcp-cubic", "cubic"),
	}
	for _, c := range settings {
		in := c
		in.in = true
		out = append(out, c, in)
	}
	upstream := tcp(middle, "100Mbit/tcp-cubic-upstream-101", "cubic")
	upstream.in, upstream.upstream = true, true
	return append(out, upstream)
}

// rampTiming has the durations of each step and of the overload.
type rampTiming struct {
	step, overload time.Duration
	// bin is the length of a "second" of the targets: at 0.8 Mbit/s a second has at most 7 frames of
	// the smallest group, so that bins of 10 s are used.
	bin time.Duration
	// drain is how long the flows are observed after they have stopped, so that segments that have
	// arrived behind a missing one do not count as lost. At 0.8 Mbit/s that is seconds of data.
	drain time.Duration
}

const rampSteps = 16 // after the first level

func (t rampTiming) begins() time.Duration { return rampSteps * t.step }
func (t rampTiming) ends() time.Duration   { return t.begins() + t.overload }
func (t rampTiming) length() time.Duration { return t.ends() + t.drain }

// warm is the time from which retransmissions count: after a tenth of the overload.
func (t rampTiming) warm() time.Duration { return t.begins() + t.overload/10 }

// sample is the interval between readings of the sockets.
func (t rampTiming) sample() time.Duration { return min(time.Second, t.overload/10) }

func (c rampCase) slow() bool { return c.limit < 10*unit.Mbit }

func (c rampCase) timing(quick bool) rampTiming {
	const ms, drain = time.Millisecond, 2 * time.Second
	switch {
	case quick && c.slow():
		return rampTiming{125 * ms, 10 * time.Second, 5 * time.Second, drain}
	case quick:
		return rampTiming{50 * ms, 2 * time.Second, time.Second, 0}
	case c.seedTime:
		return rampTiming{30 * time.Second, 300 * time.Second, 10 * time.Second, drain}
	case c.slow():
		return rampTiming{5 * time.Second, 60 * time.Second, 10 * time.Second, drain}
	}
	return rampTiming{5 * time.Second, 60 * time.Second, time.Second, 0}
}

// shares returns the part of the limit that each connection offers at a level: 10 % each at level 0,
// then connection 0 rises to 30 % in steps of 5 %, then 1, 2 and 3.
func shares(level int) (percent [4]int) {
	for i := range percent {
		percent[i] = 10 + 5*min(max(level-4*i, 0), 4)
	}
	return percent
}

func (c rampCase) flows(t rampTiming) []traffic.Flow {
	from, to := ends(c.in)
	flows := make([]traffic.Flow, len(seedShares))
	for i := range flows {
		flows[i] = traffic.Flow{
			Name: groupName(i), From: from, To: to, Protocol: c.protocol, IPv6: c.ipv6, Congestion: c.cc, DstPort: basePort + uint16(i),
		}
		last := 0
		for level := range rampSteps + 1 {
			if p := shares(level)[i]; p != last {
				last = p
				flows[i].Schedule = append(flows[i].Schedule, traffic.Step{
					At: time.Duration(level) * t.step, Rate: unit.Rate(p) * c.limit / 100,
				})
			}
		}
		flows[i].Schedule = append(flows[i].Schedule, traffic.Step{At: t.ends()})
	}
	return flows
}

// due returns the rate that a group must get in the overload: min(offered, guarantee).
func (c rampCase) due(i int) float64 {
	offered := unit.Rate(shares(rampSteps)[i]) * c.limit / 100
	return float64(min(offered, c.guarantees()[i].Of(c.limit)))
}

// Ids of the case's claims.
func (c rampCase) ramp(what string) string {
	if c.many {
		return fmt.Sprintf("drawn/%s/%s/%s", c.name, direction(c.in), what)
	}
	return fmt.Sprintf("ramp-%s/%s/%s", direction(c.in), c.name, what)
}
func (c rampCase) covetous(i int) string {
	return fmt.Sprintf("covetous/%s/%s/%s", direction(c.in), c.name, groupName(i))
}
func (c rampCase) steady() string { return fmt.Sprintf("steady/%s/%s", direction(c.in), c.name) }

// sinceFull is the covetous effect in the paper's window, and steadySeconds the variation in its bins.
func (c rampCase) sinceFull(i int) string { return c.covetous(i) + "-since-the-limit-is-reached" }
func (c rampCase) steadySeconds() string  { return c.steady() + "/1s" }

// fullLevel is the level at which the total offered load reaches the limit.
const fullLevel = 12

// papers reports whether the case is the paper's: its rate, its timing, and the limiter on the sending
// side.
func (c rampCase) papers() bool { return c.seedTime && !c.in }

// inside returns the groups that stay within their guarantee.
var inside = []int{2, 3}

// Values of the paper (recovered from its figures and appendix A): the sender's side with the
// limiter on what it sends, in the overload, SCTP payload in kB/s of 100. They are for 0.8 Mbit/s
// and the paper's timing, and are only in the rows of that case.
var (
	paperRates = []float64{10.9, 19.5, 30.0, 30.0}
	paperGoal  = []float64{10, 20, 30, 30}
	paperTotal = 90.4
	// Group 2 retransmits at 822 and 823 s and group 3 three times at 822 s, and otherwise never
	// (figures V.13 and V.14): after the limit is reached (679 s), and before the end of the
	// overload's first tenth.
	paperCovetous  = 0.0
	paperSinceFull = map[int]float64{2: 2, 3: 3}
	// The worst connection's standard deviation divided by its mean.
	paperSteady        = 0.07 // of samples of 10 s
	paperSteadySeconds = 0.44 // of 1 s
)

const (
	noteXen      = "in samples of 1 s the paper's plain limit (Xen) had about 1.45, and a total of 51 to 74 % of the limit"
	noteCovetous = "paper: 2 retransmissions of group 2 and 3 of group 3, at 822 and 823 s, before the overload is measured; they are in the rows since-the-limit-is-reached"
	noteSeed     = "paper: SCTP payload at 0.8 Mbit/s, on the sending side"
	noteReceive  = "paper: on the receiving side group 2, exactly at its guarantee, retransmits all the time"
)

func (c rampCase) claims() (out []bench.Claim) {
	peers := c.limiters(false)[1:]
	for i := range seedShares {
		claim := bench.NewClaim(c.ramp(groupName(i)), "rate over the overload, relative to min(offered, guarantee)", rampGroup, peers...)
		if c.papers() {
			claim = claim.WithPaper(100 * paperRates[i] / paperGoal[i]).WithNote(noteSeed)
		}
		out = append(out, claim)
	}
	worst := "worst second of any group, relative to min(offered, guarantee)"
	if c.slow() {
		worst = "worst 10 s of any group, relative to min(offered, guarantee)"
	}
	total := bench.NewClaim(c.ramp("total"), "total goodput over the overload, relative to TCP's maximum", rampTotal, peers...)
	if c.papers() {
		total = total.WithPaper(paperTotal).WithNote(noteSeed)
	}
	out = append(out, bench.NewClaim(c.ramp("worst-second"), worst, rampSecond, peers...), total)
	if c.drawn != "" { // which groups are within their guarantee depends on the random values, and so would the claims
		return out
	}
	for _, i := range inside {
		what := "segments retransmitted"
		if c.protocol == traffic.UDP {
			what = "datagrams lost"
		}
		claim := bench.NewClaim(c.covetous(i), what+" in a group within its guarantee", covetous, peers...)
		switch {
		case c.papers():
			claim = claim.WithPaper(paperCovetous).WithNote(noteCovetous)
			since := bench.NewClaim(c.sinceFull(i), what+" in a group within its guarantee, since the total offered load reached the limit", covetous, peers...)
			out = append(out, since.WithPaper(paperSinceFull[i]).WithNote(noteSeed))
		case c.seedTime && i == 2:
			claim = claim.WithNote(noteReceive)
		}
		out = append(out, claim)
	}
	even := bench.NewClaim(c.steady(), "coefficient of variation of the worst connection", steady, peers...)
	if !c.papers() {
		return append(out, even)
	}
	return append(out, even.WithPaper(paperSteady).WithNote(noteSeed), bench.NewClaim(c.steadySeconds(), "the same in samples of 1 s", steadySeconds, peers...).
		WithPaper(paperSteadySeconds).WithNote(noteSeed).WithNote(noteXen))
}

package limiter

// silence is a time in which no packet was sent, or none arrived: between the packets at
// after and after+1.
type silence struct {
	after    int
	from, to float64 // ns
}

func (s silence) length() float64 { return s.to - s.from }

const (
	// silent is the minimum length of a silence in usual gaps, and minSilence the
	// minimum excess: cross traffic, scheduler ticks and interrupt coalescing cause gaps
	// below 0.1 ms (section 4.4.2, and measured). T of 1 ms leaves 0.2 ms of silence if
	// the limiter has 0.8 of the link's rate.
	silent     = 2.5
	minSilence = 100e3 // ns
)

// usual returns the gap between packets within a burst: the lower quartile, because a
// limiter that passes two packets at a time makes half of all gaps silences.
func usual(times []float64, asked float64) float64 {
	return max(asked, quantile(gaps(times), 0.25))
}

// neighbours is the number of gaps on either side that define the usual gap at a position:
// the head of a train may arrive a hundred times as fast as its tail.
const neighbours = 8

// quiet returns the gaps that are silences. The usual gap is the larger one of both
// sides: next to a clump that the receiver took late, the other side is correct.
func quiet(times []float64, asked float64) (after []int) {
	all := gaps(times)
	for i, gap := range all {
		base := asked
		if gap <= silent*base+minSilence {
			continue
		}
		left, right := all[max(0, i-neighbours):i], all[i+1:min(len(all), i+1+neighbours)]
		for _, side := range [][]float64{left, right} {
			if len(side) >= neighbours/2 || len(side) >= len(all)-1-len(side) {
				base = max(base, quantile(side, 0.25))
			}
		}
		if gap > silent*base+minSilence {
			after = append(after, i)
		}
	}
	return after
}

// unsent returns the silences of the sender: times in which it should have sent.
func (v *trainView) unsent() (out []silence) {
	for _, i := range quiet(v.sent, v.asked) {
		out = append(out, silence{i, v.sent[i], v.sent[i+1]})
	}
	return out
}

// silences returns the silences in the arrivals that the sender does not explain: packets
// that arrived late although they had been sent.
func (v *trainView) silences() (out []silence) {
	for _, j := range quiet(v.at, v.asked) {
		gap := v.at[j+1] - v.at[j]
		sent := max(v.sent[v.n[j+1]]-v.sent[v.n[j]], 0)
		if gap-sent > max(minSilence, gap/4) {
			out = append(out, silence{j, v.at[j], v.at[j+1]})
		}
	}
	return out
}

// burst is the arrivals [from, to) between two silences.
type burst struct{ from, to int }

func (b burst) count() int { return b.to - b.from }

// bursts returns the bursts around silences, one more than there are silences.
func (v *trainView) bursts(between []silence) []burst {
	out := make([]burst, 0, len(between)+1)
	from := 0
	for _, s := range between {
		out = append(out, burst{from, s.after + 1})
		from = s.after + 1
	}
	return append(out, burst{from, len(v.at)})
}

const (
	// lead is the number of packets of a burst that show whether it is a clump.
	lead = 4
	// clump is the maximum mean gap of a clump, in ns: half the time of a full-size
	// packet at 10 Gbit/s. A host that takes queued packets needs less (measured: 0.2 to
	// 0.5 us per packet).
	clump = 600
)

// clumped reports whether the packets after silences arrive faster than any link sends
// them: they were queued at the receiver.
func (v *trainView) clumped(bursts []burst) bool {
	sum, weight := 0.0, 0.0
	for _, b := range bursts {
		if n := min(b.count(), lead); n >= 2 {
			sum += v.at[b.from+n-1] - v.at[b.from]
			weight += float64(n - 1)
		}
	}
	return weight > 0 && sum/weight < clump
}

// lateTail packets that follow a clump may still have been queued.
const lateTail = 4

// withoutLate returns the arrivals without those that the receiver took late: after a silence,
// packets arrive in a clump until the receiver has caught up. The first packets of a
// train may be a clump, too.
func (v *trainView) withoutLate() *trainView {
	if len(v.at) == 0 {
		return v
	}
	late := make([]bool, len(v.at))
	some := false
	for _, s := range append([]silence{{after: -1}}, v.silences()...) {
		j := s.after + 1
		for ; j+lateTail < len(v.at) && v.at[j+lateTail]-v.at[j] < lateTail*clump; j++ {
			late[j], some = true, true
		}
		if late[s.after+1] {
			for k := j; k < min(j+lateTail, len(v.at)); k++ {
				late[k] = true
			}
		}
	}
	if !some {
		return v
	}
	out := *v
	out.n, out.at = nil, nil
	for j := range v.at {
		if !late[j] {
			out.n, out.at = append(out.n, v.n[j]), append(out.at, v.at[j])
		}
	}
	return &out
}

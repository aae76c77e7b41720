package limiter

// silence is a time in which nothing was sent, or nothing came: between the packets
// at after and after+1.
type silence struct {
	after    int
	from, to float64 // ns
}

func (s silence) length() float64 { return s.to - s.from }

const (
	// silent is how many usual gaps a silence is longer than, and leastSilence what it
	// is longer by: cross traffic, a scheduler's tick and interrupt coalescing make
	// gaps below 0.1 ms (section 4.4.2, and measured), and T of 1 ms leaves 0.2 ms of
	// silence where the limiter gives 0.8 of the link.
	silent       = 2.5
	leastSilence = 100e3 // ns
)

// usual is the gap between packets inside a burst: the lower quartile, because a
// limiter that lets two packets pass at a time makes half of all gaps silences.
func usual(times []float64, asked float64) float64 {
	return max(asked, quantile(gaps(times), 0.25))
}

// beside is how many gaps on either side say what is usual at a place: the head of a
// train may come a hundred times as fast as its tail.
const beside = 8

// quiet are the gaps that are silences. The larger of both sides is what is usual:
// next to a clump that was taken late the other side is as it came.
func quiet(times []float64, asked float64) (after []int) {
	all := gaps(times)
	for i, gap := range all {
		base := asked
		if gap <= silent*base+leastSilence {
			continue
		}
		left, right := all[max(0, i-beside):i], all[i+1:min(len(all), i+1+beside)]
		for _, side := range [][]float64{left, right} {
			if len(side) >= beside/2 || len(side) >= len(all)-1-len(side) {
				base = max(base, quantile(side, 0.25))
			}
		}
		if gap > silent*base+leastSilence {
			after = append(after, i)
		}
	}
	return after
}

// unsent are the silences of the sender: it was asked to send, and did not.
func (v *view) unsent() (out []silence) {
	for _, i := range quiet(v.sent, v.asked) {
		out = append(out, silence{i, v.sent[i], v.sent[i+1]})
	}
	return out
}

// silences are those of arrivals that the sender's do not explain: what came late
// although it had been sent.
func (v *view) silences() (out []silence) {
	for _, j := range quiet(v.at, v.asked) {
		gap := v.at[j+1] - v.at[j]
		sent := max(v.sent[v.n[j+1]]-v.sent[v.n[j]], 0)
		if gap-sent > max(leastSilence, gap/4) {
			out = append(out, silence{j, v.at[j], v.at[j+1]})
		}
	}
	return out
}

// burst is what came between two silences: arrivals [from, to).
type burst struct{ from, to int }

func (b burst) count() int { return b.to - b.from }

// bursts are those around silences: one more than there are of these.
func (v *view) bursts(between []silence) []burst {
	out := make([]burst, 0, len(between)+1)
	from := 0
	for _, s := range between {
		out = append(out, burst{from, s.after + 1})
		from = s.after + 1
	}
	return append(out, burst{from, len(v.at)})
}

const (
	// lead is how many packets of a burst tell whether it is a clump.
	lead = 4
	// clump is the mean gap of one, in ns: half of what a full packet takes at 10
	// Gbit/s. A host that takes what had been there needs less (measured: 0.2 to 0.5
	// us a packet).
	clump = 600
)

// clumped tells whether what comes after silences comes faster than any link sent it:
// the packets had been there, and nobody took them.
func (v *view) clumped(bursts []burst) bool {
	sum, weight := 0.0, 0.0
	for _, b := range bursts {
		if n := min(b.count(), lead); n >= 2 {
			sum += v.at[b.from+n-1] - v.at[b.from]
			weight += float64(n - 1)
		}
	}
	return weight > 0 && sum/weight < clump
}

// few packets that follow a clump may still have waited.
const few = 4

// prompt are the arrivals without those that were taken late: after a silence
// packets come in a clump until the receiver has caught up. A train's first may be
// one, too.
func (v *view) prompt() *view {
	if len(v.at) == 0 {
		return v
	}
	late := make([]bool, len(v.at))
	some := false
	for _, s := range append([]silence{{after: -1}}, v.silences()...) {
		j := s.after + 1
		for ; j+few < len(v.at) && v.at[j+few]-v.at[j] < few*clump; j++ {
			late[j], some = true, true
		}
		if late[s.after+1] {
			for k := j; k < min(j+few, len(v.at)); k++ {
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

package compare

import (
	"math"
	"slices"

	"headgate/probe"
	"headgate/unit"
)

// unfit says why samples cannot be read, if so.
func unfit(samples []probe.JointSample) string {
	if len(samples) == 0 {
		return "nothing was sent"
	}
	var came [2]int
	clumps := 0
	for i := range samples {
		s := &samples[i]
		if len(s.Trains) != 2 {
			return "two senders are compared"
		}
		if s.Reordered {
			return reordered
		}
		if clumped(s) {
			clumps++
		}
		for _, a := range s.Arrived {
			if a.From == 0 || a.From == 1 {
				came[a.From]++
			}
		}
	}
	switch {
	case min(came[0], came[1]) < 2:
		return silent
	case 2*clumps > len(samples):
		return reordered
	}
	return ""
}

// clump is the length of a run of one sender's full packets from which on it was hardly
// the path that made it: the slower path's packets come alone there, or two when others'
// delayed one.
const clump = 3

// clumped tells whether the packets of both senders come in runs, as they do from two
// receive queues with coalescing (figure 3.21). Runs are counted by time in full packets,
// since a cross packet holds up several small ones.
func clumped(s *probe.JointSample) bool {
	if len(s.Trains[0].Parts) == 0 || len(s.Trains[1].Parts) == 0 {
		return false
	}
	longest := float64(clump*(fullSize+probe.Overhead)) / float64(s.Trains[0].Parts[0].Frame())
	from := max(first(s, 0), first(s, 1))
	to := min(last(s, 0), last(s, 1))
	for sender := range 2 {
		var runs []int // one entry a packet
		n := 0
		end := func() {
			for range n {
				runs = append(runs, n)
			}
			n = 0
		}
		for i := from; i <= to; i++ {
			if s.Arrived[i].From == sender {
				n++
			} else {
				end()
			}
		}
		end()
		slices.Sort(runs)
		if len(runs) < least || float64(runs[len(runs)/2]) < longest {
			return false
		}
	}
	return true
}

func first(s *probe.JointSample, of int) int {
	return slices.IndexFunc(s.Arrived, func(a probe.JointArrival) bool { return a.From == of })
}

func last(s *probe.JointSample, of int) int {
	for i, a := range slices.Backward(s.Arrived) {
		if a.From == of {
			return i
		}
	}
	return -1
}

func blockBytes(samples []probe.JointSample) (b unit.Bytes) {
	for i := range samples {
		if samples[i].Purpose != blocksPurpose {
			continue
		}
		for _, p := range samples[i].Trains[0].Parts {
			b = max(b, unit.Bytes(p.Count*p.Frame()))
		}
	}
	return b
}

// change tells whether the ratio is another one in the first blocks of each joint than
// in the last: a bucket was emptied.
func change(st []stretch) (early, late []stretch, changed bool) {
	for i, s := range st {
		// Numbers begin anew in each joint.
		switch n := place(st, i); {
		case n < 1.0/4:
			early = append(early, s)
		case n > 1.0/2:
			late = append(late, s)
		}
	}
	if len(early) < 2*leastStretches || len(late) < 2*leastStretches {
		return nil, nil, false
	}
	return early, late, differ(early, late)
}

// differ tells whether two sets of stretches have another ratio on average, more than
// cross traffic would make by chance.
func differ(early, late []stretch) bool {
	a, b := slopes(early), slopes(late)
	by := math.Abs(a.mean - b.mean)
	return by > leastChange && by > 5*math.Hypot(a.error, b.error)
}

// leastChange of the logarithm of the ratio that is one.
const leastChange = 0.15

// place is where in its joint a stretch is, from 0 to 1.
func place(st []stretch, i int) float64 {
	from, to := i, i
	for from > 0 && st[from-1][0].number < st[from][0].number {
		from--
	}
	for to+1 < len(st) && st[to+1][0].number > st[to][0].number {
		to++
	}
	return (float64(i-from) + 0.5) / float64(to-from+1)
}

type average struct{ mean, error float64 }

// slopes is the mean of the stretches' logarithms of slope, and its standard error.
func slopes(st []stretch) (a average) {
	sum, square, n := 0.0, 0.0, 0.0
	for i := range st {
		if v := math.Log(slope(st[i : i+1])); !math.IsInf(v, 0) && !math.IsNaN(v) {
			sum, square, n = sum+v, square+v*v, n+1
		}
	}
	if n < 2 {
		return average{0, math.Inf(1)}
	}
	a.mean = sum / n
	a.error = math.Sqrt(max(square/n-a.mean*a.mean, 0) / (n - 1))
	return a
}

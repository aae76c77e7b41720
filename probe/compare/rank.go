package compare

import (
	"cmp"
	"math"
	"slices"

	"headgate.dev/headgate/probe"
)

// Pair is the result for two of several senders.
type Pair struct {
	A, B int
	Result
}

// Two returns the part of two senders of a sample of several senders.
func Two(s *probe.JointSample, a, b int) probe.JointSample {
	out := probe.JointSample{Joint: probe.Joint{Purpose: s.Purpose}, Reordered: s.Reordered}
	for _, from := range []int{a, b} {
		out.Trains = append(out.Trains, s.Trains[from])
		out.Sent = append(out.Sent, s.Sent[from])
		if from < len(s.Start) {
			out.Start = append(out.Start, s.Start[from])
		}
	}
	for _, p := range s.Arrived {
		switch p.From {
		case a:
			p.From = 0
		case b:
			p.From = 1
		default:
			continue
		}
		out.Arrived = append(out.Arrived, p)
	}
	return out
}

// Ranked is the position of a sender on the common scale.
type Ranked struct {
	Sender int `json:"sender"`
	// Relative is the capacity of its path divided by that of the fastest path.
	Relative probe.Estimate `json:"relative"`
}

// Rank puts senders on one scale, the fastest first. It fits logarithms to those of all
// pairs' ratios with least squares, weighted by their intervals. It omits senders that no
// pair connects to the largest group.
func Rank(senders int, pairs []Pair) (out []Ranked) {
	type tie struct {
		a, b   int
		log, w float64
	}
	var ties []tie
	group := make([]int, senders) // group of connected senders
	for i := range group {
		group[i] = i
	}
	for _, p := range pairs {
		r := p.Ratio
		if p.Roughly != nil {
			r = *p.Roughly
		}
		if !r.Known() || r.Value <= 0 || min(p.A, p.B) < 0 || max(p.A, p.B) >= senders || p.A == p.B {
			continue
		}
		width := unsure
		if r.Low > 0 && r.High > r.Low {
			width = math.Log(r.High / r.Low)
		}
		ties = append(ties, tie{p.A, p.B, math.Log(r.Value), 1 / (width * width)})
		from, to := group[p.B], group[p.A]
		for i := range group {
			if group[i] == from {
				group[i] = to
			}
		}
	}
	var on []int // members of the largest group
	for g := range group {
		var in []int
		for i := range group {
			if group[i] == g {
				in = append(in, i)
			}
		}
		if len(in) > len(on) {
			on = in
		}
	}
	if len(on) == 0 {
		return nil
	}
	// Normal equations; the logarithm of the first sender is 0.
	n := len(on) - 1
	at := func(sender int) int { return slices.Index(on, sender) - 1 }
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, 2*n+1) // the matrix, the right side, and the inverse
		m[i][n+1+i] = 1
	}
	for _, t := range ties {
		if group[t.a] != group[on[0]] {
			continue
		}
		a, b := at(t.a), at(t.b)
		if a >= 0 {
			m[a][a] += t.w
			m[a][n] -= t.w * t.log
		}
		if b >= 0 {
			m[b][b] += t.w
			m[b][n] += t.w * t.log
		}
		if a >= 0 && b >= 0 {
			m[a][b] -= t.w
			m[b][a] -= t.w
		}
	}
	solve(m)
	logs := make([]float64, n+1)
	fastest := 0
	for i := range n {
		logs[i+1] = m[i][n]
		if logs[i+1] > logs[fastest] {
			fastest = i + 1
		}
	}
	// The width of a tie is two half intervals; so is that of a difference of logarithms.
	variance := func(i, j int) float64 {
		if i < 0 || j < 0 {
			return 0
		}
		return m[i][n+1+j]
	}
	for i, sender := range on {
		f := fastest - 1
		width := math.Sqrt(max(variance(i-1, i-1)+variance(f, f)-2*variance(i-1, f), 0))
		v := math.Exp(logs[i] - logs[fastest])
		out = append(out, Ranked{sender, probe.Estimate{Value: v, Low: v * math.Exp(-width/2), High: v * math.Exp(width/2)}})
	}
	slices.SortStableFunc(out, func(a, b Ranked) int { return cmp.Compare(b.Relative.Value, a.Relative.Value) })
	return out
}

// unsure is the width of an interval, as a logarithm, if there is none.
const unsure = 0.4

// solve is Gauss-Jordan elimination of as many columns as there are rows.
func solve(m [][]float64) {
	for i := range m {
		best := i
		for r := i + 1; r < len(m); r++ {
			if math.Abs(m[r][i]) > math.Abs(m[best][i]) {
				best = r
			}
		}
		m[i], m[best] = m[best], m[i]
		pivot := m[i][i]
		for c := range m[i] {
			m[i][c] /= pivot
		}
		for r := range m {
			if r == i {
				continue
			}
			by := m[r][i]
			for c := range m[r] {
				m[r][c] -= by * m[i][c]
			}
		}
	}
}

package limiter

import (
	"fmt"
	"math"
)

const (
	// differs is by how much two trains' rates differ if the path changed between them.
	differs = 0.05
	// muchStill of the time a host's processors do not stand still of themselves
	// (measured: up to 0.06 on busy ones).
	muchStill = 0.1
)

// doubts are what was wrong with the trains, or disagreed among them.
func (e *evidence) doubts(r *Result) (out []string) {
	if e.overflow > 0 {
		out = append(out, fmt.Sprintf("the receiver itself dropped packets of %d trains", e.overflow))
	}
	if e.stepped > 0 {
		out = append(out, fmt.Sprintf("the receiver's clock was set back in %d trains", e.stepped))
	}
	if e.cut > 0 {
		out = append(out, fmt.Sprintf("%d trains were not sent to their end", e.cut))
	}
	if e.vanished > 0 {
		out = append(out, fmt.Sprintf("nothing of %d trains arrived", e.vanished))
	}
	if still, length := e.stoodStill(); (r.Class == None || r.Class == CPU) && still >= leastTicks && length > muchStill*e.looked() {
		out = append(out, fmt.Sprintf("trains stood still %d times, for no reason that was found", still))
	}
	if r.Class != TBF && r.Class != None {
		return out
	}
	for i := range e.tails {
		t := &e.tails[i]
		if t == e.longest || !t.exact || !e.shaped(t) || len(t.took.at)-t.knee < firstCount/2 {
			continue
		}
		if one, other := t.tokenRate(), e.longest.served(); math.Abs(one.Value/other-1) > differs {
			out = append(out, fmt.Sprintf("one train came at %.0f Mbit/s in the end, and another at %.0f", one.Value/1e6, other/1e6))
			break
		}
	}
	return out
}

// stoodStill is how often anything did, at either end or between, and for how long.
func (e *evidence) stoodStill() (n int, length float64) {
	for _, views := range [][]view{e.light, e.trains} {
		for i := range views {
			for _, s := range append(views[i].unsent(), views[i].silences()...) {
				n, length = n+1, length+s.length()
			}
		}
	}
	return n, length
}

// looked is how long trains were under way, in ns.
func (e *evidence) looked() (sum float64) {
	for _, views := range [][]view{e.light, e.trains} {
		for i := range views {
			if v := &views[i]; len(v.at) > 0 {
				sum += v.sent[v.n[len(v.n)-1]] - v.sent[0]
			}
		}
	}
	return sum
}

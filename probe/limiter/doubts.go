package limiter

import (
	"fmt"
	"math"
)

const (
	// differs is the relative difference of two trains' rates that shows a change of the
	// path.
	differs = 0.05
	// stallThreshold is more than the fraction of time for which the processors of a host
	// stall without a schedule (measured: up to 0.06 on busy hosts).
	stallThreshold = 0.1
)

// doubts returns faults of the trains and contradictions between them.
func (e *evidence) doubts(r *Result) (out []string) {
	if e.overflow > 0 {
		out = append(out, fmt.Sprintf("the receiver's socket dropped packets of %d trains", e.overflow))
	}
	if e.stepped > 0 {
		out = append(out, fmt.Sprintf("the receiver's clock was set back in %d trains", e.stepped))
	}
	if e.cut > 0 {
		out = append(out, fmt.Sprintf("%d trains were not sent completely", e.cut))
	}
	if e.vanished > 0 {
		out = append(out, fmt.Sprintf("no packets of %d trains arrived", e.vanished))
	}
	if still, length := e.stalls(); (r.Class == None || r.Class == CPU) && still >= minTicks && length > stallThreshold*e.observedTime() {
		out = append(out, fmt.Sprintf("trains stalled %d times for an unknown reason", still))
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
			out = append(out, fmt.Sprintf("one train arrived at %.0f Mbit/s at its end, another at %.0f", one.Value/1e6, other/1e6))
			break
		}
	}
	return out
}

// stalls returns the number and the total length of stalls at both ends and on the
// path.
func (e *evidence) stalls() (n int, length float64) {
	for _, views := range [][]trainView{e.light, e.trains} {
		for i := range views {
			for _, s := range append(views[i].unsent(), views[i].silences()...) {
				n, length = n+1, length+s.length()
			}
		}
	}
	return n, length
}

// observedTime returns the total duration of the trains, in ns.
func (e *evidence) observedTime() (sum float64) {
	for _, views := range [][]trainView{e.light, e.trains} {
		for i := range views {
			if v := &views[i]; len(v.at) > 0 {
				sum += v.sent[v.n[len(v.n)-1]] - v.sent[0]
			}
		}
	}
	return sum
}

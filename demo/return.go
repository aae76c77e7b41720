package demo

import (
	"fmt"
	"time"

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/meter"
)

// A group has its guarantee again when its rate is at least backPart of the guarantee,
// averaged both over the next backShort and over the next backLong.
const (
	backPart  = 0.95
	backShort = 20 * time.Millisecond
	backLong  = 100 * time.Millisecond
)

// measureReturn measures how long after the start of scenario.Return storage had its guarantee again.
func (p *play) measureReturn() {
	p.returned = map[string]float64{}
	plan, phase := p.edges[scenario.Return][0].Plan, p.scenario.Phases[scenario.Return]
	for direction, tree := range map[string]*group.Tree{"out": plan.Out, "in": plan.In} {
		path := p.scenario.Path("media", "storage")
		goal := backPart * float64(guaranteed(tree, path))
		arrived := p.arrivals(scenario.Return, scenario.Place{Host: scenario.Hosts[0], Direction: direction, Group: path})
		for at := phase.At; at+backLong <= phase.At+phase.Length; at += arrived.Bin {
			if arrived.Rate(at, at+backShort) >= goal && arrived.Rate(at, at+backLong) >= goal {
				p.returned[direction] = (at - phase.At).Seconds() * 1e3
				break
			}
		}
	}
	p.stage.say("  " + returnText(p.returned) + ".")
}

// arrivals returns the bytes received at the other end until now, of the flows that are
// in a group in a phase.
func (p *play) arrivals(phase int, at scenario.Place) meter.Series {
	sum := meter.Series{Bin: time.Millisecond, Bytes: make([]uint64, p.scenario.Length()/time.Millisecond)}
	for _, f := range p.scenario.FlowsIn(at, phase) {
		s, err := p.meter.Series(f.Name)
		if err != nil {
			continue // a flow that has no socket has received nothing
		}
		for i := range min(len(sum.Bytes), len(s.Bytes)) {
			sum.Bytes[i] += s.Bytes[i]
		}
	}
	return sum
}

// returnText formats how long storage waited for its guarantee, in ms by direction.
func returnText(waited map[string]float64) string {
	text := func(direction string) string {
		switch ms, ok := waited[direction]; {
		case !ok:
			return "never"
		case ms < 1:
			return "under 1 ms"
		default:
			return fmt.Sprintf("%.0f ms", ms)
		}
	}
	return fmt.Sprintf("Time until storage had its guarantee again: %s (out), %s (in)", text("out"), text("in"))
}

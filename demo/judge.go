package demo

import (
	"fmt"
	"time"

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

func verdictOf(received, guarantee, demand, share, tolerance float64) Verdict {
	switch part := 1 - tolerance; {
	case received < part*min(guarantee, demand):
		return VerdictMissed
	case received < part*share:
		return VerdictLow
	}
	return VerdictOK
}

// judge compares the received rates with the guarantees.
func (p *play) judge(flows *traffic.Result) (*Result, error) {
	for _, f := range flows.Flows {
		if f.Error != "" {
			return nil, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
	}
	r := &Result{
		Engine: p.Engine, Fast: p.Fast, Tolerance: p.scenario.Tolerance,
		Returned: p.returned, OK: true,
	}
	for i := range p.scenario.Phases {
		from, to := p.scenario.Measured(i)
		phase := PhaseResult{Phase: i + 1, Title: p.scenario.Phases[i].Title, Seconds: p.scenario.Phases[i].Length.Seconds(), Counted: (to - from).Seconds()}
		phase.Groups, phase.Control = p.judgeHost(scenario.Hosts[0], i, from, to, p.edges[i], flows)
		r.Phases = append(r.Phases, phase)
	}
	from, _ := p.scenario.Measured(scenario.Overload)
	to := p.scenario.Length()
	r.Others = PhaseResult{Title: "the other hosts", Seconds: to.Seconds(), Counted: (to - from).Seconds()}
	for _, host := range scenario.Hosts[1:] {
		groups, _ := p.judgeHost(host, scenario.Overload, from, to, *p.others[host], flows)
		r.Others.Groups = append(r.Others.Groups, groups...)
	}
	for _, phase := range append(r.Phases, r.Others) {
		for _, g := range phase.Groups {
			r.OK = r.OK && g.Verdict != VerdictMissed
		}
	}
	moved := flows.Flow(scenario.Download)
	r.Moved.Connection = "tcp " + moved.FromAddr + " " + moved.ToAddr
	arrivals, err := p.meter.Series(moved.Name)
	r.Moved.Before, r.Moved.After = arrivals.Rate(p.scenario.Measured(scenario.Assign-1)), arrivals.Rate(p.scenario.Measured(scenario.Assign))
	r.Changes, r.Requests, r.OtherTenant = p.changes, p.program.Requests, p.stranger
	return r, err
}

// judgeHost judges a host's groups in the measured part of a phase, which has the counters of its
// beginning and end in edges.
func (p *play) judgeHost(host string, phase int, from, to time.Duration, edges [2]shaper.State, flows *traffic.Result) (groups []GroupResult, control ControlRates) {
	first, last := edges[0], edges[1]
	for _, d := range []struct {
		name        string
		tree        *group.Tree
		first, last *shaper.DirectionState
		control     *float64
	}{
		{"out", first.Plan.Out, first.Out, last.Out, &control.Out},
		{"in", first.Plan.In, first.In, last.In, &control.In},
	} {
		if d.tree == nil || d.first == nil || d.last == nil {
			continue
		}
		if seconds := last.At.Sub(first.At).Seconds(); seconds > 0 && d.last.Control.Bytes >= d.first.Control.Bytes {
			*d.control = float64(d.last.Control.Bytes-d.first.Control.Bytes) * 8 / seconds
		}
		at := func(n int) scenario.Place {
			return scenario.Place{Host: host, Direction: d.name, Group: d.tree.Nodes[n].Path}
		}
		demand := make([]unit.Rate, len(d.tree.Nodes))
		for n := range d.tree.Nodes {
			demand[n] = p.scenario.Demand(at(n), phase)
		}
		shares := scenario.Shares(*d.tree, demand, unit.Rate(*d.control))
		for n, node := range d.tree.Nodes {
			if node.Guarantee == 0 && demand[n] == 0 {
				continue // the group of traffic that belongs to no tenant
			}
			g := GroupResult{
				Host: host, Direction: d.name, Group: node.Path, Guarantee: uint64(node.Guarantee), Demand: uint64(demand[n]), Share: uint64(shares[n]),
			}
			if !node.Leaf { // the demand of a parent group is bounded by its child groups' ceilings
				g.Demand = g.Share
			}
			g.Received = p.arrivals(phase, at(n)).Rate(from, to)
			for _, f := range p.scenario.FlowsIn(at(n), phase) {
				sum := flows.Flow(f.Name).Between(from, to)
				g.Retransmitted += sum.Retransmits
				g.Lost += sum.LostDatagrams
			}
			if n < len(d.first.Groups) && n < len(d.last.Groups) && d.last.Groups[n].Drops >= d.first.Groups[n].Drops {
				g.Drops = d.last.Groups[n].Drops - d.first.Groups[n].Drops
			}
			g.Inside = node.Leaf && g.Demand <= g.Guarantee
			g.Verdict = verdictOf(g.Received, float64(g.Guarantee), float64(g.Demand), float64(g.Share), p.scenario.Tolerance)
			groups = append(groups, g)
		}
	}
	return groups, control
}

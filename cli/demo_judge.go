package cli

import (
	"fmt"

	"headgate/group"
	"headgate/lab/traffic"
	"headgate/shaper"
	"headgate/share"
	"headgate/unit"
)

// demoResult is what the demo found.
type demoResult struct {
	Engine group.Engine `json:"engine"`
	Fast   bool         `json:"fast"`
	// Tolerance is the part of a guarantee that may be missing.
	Tolerance float64       `json:"tolerance"`
	Phases    []phaseResult `json:"phases"`
	// Returned is how long storage waited for its guarantee when it returned, by
	// direction; a direction that never had it is missing.
	Returned map[string]float64 `json:"returned_ms"`
	// Moved is the rate of the connection that changed its group.
	Moved struct {
		Connection string  `json:"connection"`
		Before     float64 `json:"before_bps"`
		After      float64 `json:"after_bps"`
	} `json:"moved"`
	CleanedUp bool     `json:"cleaned_up"`
	Left      []string `json:"left,omitempty"` // what is still there
	Kept      string   `json:"kept,omitempty"` // the network that stays, as asked
	OK        bool     `json:"ok"`
}

type phaseResult struct {
	Phase   int           `json:"phase"`
	Title   string        `json:"title"`
	Seconds float64       `json:"seconds"`         // how long it lasted
	Counted float64       `json:"counted_seconds"` // its end, of which the rest tells
	Control controlRates  `json:"control_bps"`
	Groups  []groupResult `json:"groups"`
}

// controlRates are what acknowledgements and the like took.
type controlRates struct {
	Out float64 `json:"out"`
	In  float64 `json:"in"`
}

// groupResult is one group in one direction and phase. Rates are layer 2.
type groupResult struct {
	Direction string  `json:"direction"`
	Group     string  `json:"group"`
	Guarantee uint64  `json:"guarantee_bps"`
	Wanted    uint64  `json:"wanted_bps"` // 0 in a phase in which it is idle
	Share     uint64  `json:"share_bps"`  // share.Allocate's answer to what all wanted
	Received  float64 `json:"received_bps"`
	// Retransmitted TCP segments and lost datagrams, as the hosts saw them; Drops
	// are the group's queue's.
	Retransmitted uint64 `json:"retransmitted"`
	Lost          uint64 `json:"lost"`
	Drops         uint64 `json:"drops"`
	// Inside: it wanted no more than its guarantee, so it should lose nothing.
	Inside  bool    `json:"inside_guarantee"`
	Verdict verdict `json:"verdict"`
}

// verdict on a group's rate.
type verdict string

const (
	verdictOK  verdict = "ok"
	verdictLow verdict = "low"    // the guarantee was kept, but less was lent than share says
	missed     verdict = "MISSED" // less than the guarantee, or than it wanted of it
)

func judged(received, guarantee, wanted, share, tolerance float64) verdict {
	switch part := 1 - tolerance; {
	case received < part*min(guarantee, wanted):
		return missed
	case received < part*share:
		return verdictLow
	}
	return verdictOK
}

// judge compares what was received with what was guaranteed.
func (p *play) judge(flows *traffic.Result) (*demoResult, error) {
	for _, f := range flows.Flows {
		if f.Error != "" {
			return nil, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
	}
	r := &demoResult{
		Engine: p.scenario.engine, Fast: p.fast, Tolerance: p.tolerance,
		Returned: p.returned, OK: true,
	}
	for i := range p.phases {
		phase := p.judgePhase(i, flows)
		for _, g := range phase.Groups {
			r.OK = r.OK && g.Verdict != missed
		}
		r.Phases = append(r.Phases, phase)
	}
	moved := flows.Flow(demoMoved + " out")
	r.Moved.Connection = "tcp " + moved.FromAddr + " " + moved.ToAddr
	arrivals, err := p.meter.Series(moved.Name)
	r.Moved.Before, r.Moved.After = arrivals.Rate(p.counted(phaseMove-1)), arrivals.Rate(p.counted(phaseMove))
	return r, err
}

func (p *play) judgePhase(i int, flows *traffic.Result) phaseResult {
	from, to := p.counted(i)
	first, last := p.edges[i][0], p.edges[i][1]
	out := phaseResult{Phase: i + 1, Title: p.phases[i].title, Seconds: p.phases[i].length.Seconds(), Counted: (to - from).Seconds()}
	for _, d := range []struct {
		name        string
		tree        *group.Tree
		first, last *shaper.DirectionState
		control     *float64
	}{
		{"out", first.Plan.Out, first.Out, last.Out, &out.Control.Out},
		{"in", first.Plan.In, first.In, last.In, &out.Control.In},
	} {
		if d.tree == nil || d.first == nil || d.last == nil {
			continue
		}
		if seconds := last.At.Sub(first.At).Seconds(); seconds > 0 && d.last.Control.Bytes >= d.first.Control.Bytes {
			*d.control = float64(d.last.Control.Bytes-d.first.Control.Bytes) * 8 / seconds
		}
		wants := func(g string) unit.Rate { return p.wanted(i, d.name, g) }
		shares := fairShares(*d.tree, wants, unit.Rate(*d.control))
		for n, node := range d.tree.Nodes {
			g := groupResult{
				Direction: d.name, Group: node.Path, Guarantee: uint64(node.Guarantee), Wanted: uint64(wants(node.Path)), Share: uint64(shares[n]),
			}
			g.Received = p.arrivals(i, d.name, node.Path).Rate(from, to)
			for _, f := range p.flows {
				if f.direction != d.name || f.groupIn(i) != node.Path {
					continue
				}
				sum := flows.Flow(f.Name).Between(from, to)
				g.Retransmitted += sum.Retransmits
				g.Lost += sum.LostDatagrams
			}
			if n < len(d.first.Groups) && n < len(d.last.Groups) && d.last.Groups[n].Drops >= d.first.Groups[n].Drops {
				g.Drops = d.last.Groups[n].Drops - d.first.Groups[n].Drops
			}
			g.Inside = g.Wanted <= g.Guarantee
			g.Verdict = judged(g.Received, float64(g.Guarantee), float64(g.Wanted), float64(g.Share), p.tolerance)
			out.Groups = append(out.Groups, g)
		}
	}
	return out
}

// fairShares is package share's answer: what each node of the tree gets when its
// groups want that much, and control traffic takes its part first.
func fairShares(t group.Tree, wants func(path string) unit.Rate, control unit.Rate) []unit.Rate {
	spare := map[group.Spare]share.Spare{group.Proportional: share.Proportional, group.Equal: share.Equal, group.Priority: share.Priority}[t.Spare]
	var claims []share.Claim
	for _, n := range t.Nodes {
		claims = append(claims, share.Claim{
			Parent: n.Parent, Guarantee: n.Guarantee, Ceiling: n.Ceiling, Weight: uint64(t.Weight(n)), Priority: n.Priority, Demand: wants(n.Path),
		})
	}
	claims = append(claims, share.Claim{Parent: -1, Guarantee: control, Ceiling: t.Limit, Demand: control})
	return share.Allocate(t.Limit, spare, claims)[:len(t.Nodes)]
}

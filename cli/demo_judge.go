package cli

import (
	"fmt"
	"time"

	"headgate/group"
	"headgate/lab/traffic"
	"headgate/shaper"
	"headgate/share"
	"headgate/unit"
)

// demoResult is the result of a demo.
type demoResult struct {
	Engine group.Engine `json:"engine"`
	Fast   bool         `json:"fast"`
	// Tolerance is the fraction by which a rate may be below the guarantee.
	Tolerance float64       `json:"tolerance"`
	Phases    []phaseResult `json:"phases"`
	// Others has the hosts whose links are not congested, over all phases except the first.
	Others phaseResult `json:"other_hosts"`
	// Returned is the time until storage had its guarantee again in phaseReturn, by
	// direction. A direction that never reached the guarantee has no entry.
	Returned map[string]float64 `json:"returned_ms"`
	// Moved has the rates of the connection that was assigned to another group.
	Moved struct {
		Connection string  `json:"connection"`
		Before     float64 `json:"before_bps"`
		After      float64 `json:"after_bps"`
	} `json:"moved"`
	// Changes are the guarantees that shop's program got. Asked are its requests, and Stranger
	// those of another tenant.
	Changes     []tenantChange `json:"tenant_changes"`
	Asked       []demoRequest  `json:"tenant_requests"`
	OtherTenant []demoRequest  `json:"other_tenant_requests"`
	// Usage has the agents' usage records.
	Usage []usageRow `json:"proof"`
	// Disturbed describes the load of other programs on the machine, "" if it was low.
	Disturbed string   `json:"disturbed,omitempty"`
	CleanedUp bool     `json:"cleaned_up"`
	Left      []string `json:"left,omitempty"`    // remains after the cleanup
	Kept      string   `json:"kept,omitempty"`    // the name of the network, with --keep
	Service   string   `json:"service,omitempty"` // the URL of the service, with --keep
	OK        bool     `json:"ok"`
}

type phaseResult struct {
	Phase   int           `json:"phase"`
	Title   string        `json:"title"`
	Seconds float64       `json:"seconds"`         // the length of the phase
	Counted float64       `json:"counted_seconds"` // the measured part, at its end
	Control controlRates  `json:"control_bps"`
	Groups  []groupResult `json:"groups"`
}

// controlRates has the rates of control traffic.
type controlRates struct {
	Out float64 `json:"out"`
	In  float64 `json:"in"`
}

// groupResult is one group in one direction and phase. Rates are layer 2.
type groupResult struct {
	Host      string  `json:"host"`
	Direction string  `json:"direction"`
	Group     string  `json:"group"` // a tenant's group is the sum of its child groups
	Guarantee uint64  `json:"guarantee_bps"`
	Wanted    uint64  `json:"wanted_bps"` // the demand; 0 in a phase in which the group is idle
	Share     uint64  `json:"share_bps"`  // the allocation by share.Allocate for all groups' demands
	Received  float64 `json:"received_bps"`
	// Retransmitted TCP segments and Lost datagrams are counted by the hosts. Drops
	// are those of the group's queue.
	Retransmitted uint64 `json:"retransmitted"`
	Lost          uint64 `json:"lost"`
	Drops         uint64 `json:"drops"`
	// Inside is true for a leaf group whose demand is within its guarantee, so that it should
	// lose nothing.
	Inside  bool    `json:"inside_guarantee"`
	Verdict verdict `json:"verdict"`
}

// verdict is the assessment of a group's rate.
type verdict string

const (
	verdictOK  verdict = "ok"
	verdictLow verdict = "low"    // the guarantee was met, but the group borrowed less than its share
	missed     verdict = "MISSED" // less than the guarantee and than the demand
)

func verdictOf(received, guarantee, wanted, share, tolerance float64) verdict {
	switch part := 1 - tolerance; {
	case received < part*min(guarantee, wanted):
		return missed
	case received < part*share:
		return verdictLow
	}
	return verdictOK
}

// judge compares the received rates with the guarantees.
func (p *play) judge(flows *traffic.Result) (*demoResult, error) {
	for _, f := range flows.Flows {
		if f.Error != "" {
			return nil, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
	}
	r := &demoResult{
		Engine: p.demoScenario.engine, Fast: p.fast, Tolerance: p.tolerance,
		Returned: p.returned, OK: true,
	}
	for i := range p.phases {
		from, to := p.counted(i)
		phase := phaseResult{Phase: i + 1, Title: p.phases[i].title, Seconds: p.phases[i].length.Seconds(), Counted: (to - from).Seconds()}
		phase.Groups, phase.Control = p.judgeHost(demoHosts[0], i, from, to, p.edges[i], flows)
		r.Phases = append(r.Phases, phase)
	}
	from, _ := p.counted(phaseOverload)
	to := p.length()
	r.Others = phaseResult{Title: "the other hosts", Seconds: to.Seconds(), Counted: (to - from).Seconds()}
	for _, host := range demoHosts[1:] {
		groups, _ := p.judgeHost(host, phaseOverload, from, to, *p.others[host], flows)
		r.Others.Groups = append(r.Others.Groups, groups...)
	}
	for _, phase := range append(r.Phases, r.Others) {
		for _, g := range phase.Groups {
			r.OK = r.OK && g.Verdict != missed
		}
	}
	moved := flows.Flow(demoMoved + " out")
	r.Moved.Connection = "tcp " + moved.FromAddr + " " + moved.ToAddr
	arrivals, err := p.meter.Series(moved.Name)
	r.Moved.Before, r.Moved.After = arrivals.Rate(p.counted(phaseMove-1)), arrivals.Rate(p.counted(phaseMove))
	r.Changes, r.Asked, r.OtherTenant = p.changes, p.program.Requests, p.stranger
	return r, err
}

// judgeHost judges a host's groups in the measured part of a phase, which has the counters of its
// beginning and end in edges.
func (p *play) judgeHost(host string, phase int, from, to time.Duration, edges [2]shaper.State, flows *traffic.Result) (groups []groupResult, control controlRates) {
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
		at := func(n int) demoPlace { return demoPlace{host, d.name, d.tree.Nodes[n].Path} }
		wants := make([]unit.Rate, len(d.tree.Nodes))
		for n := range d.tree.Nodes {
			wants[n] = p.wanted(phase, at(n))
		}
		shares := fairShares(*d.tree, wants, unit.Rate(*d.control))
		for n, node := range d.tree.Nodes {
			if node.Guarantee == 0 && wants[n] == 0 {
				continue // the group of traffic that belongs to no tenant
			}
			g := groupResult{
				Host: host, Direction: d.name, Group: node.Path, Guarantee: uint64(node.Guarantee), Wanted: uint64(wants[n]), Share: uint64(shares[n]),
			}
			if !node.Leaf { // the demand of a parent group is bounded by its child groups' ceilings
				g.Wanted = g.Share
			}
			g.Received = p.arrivals(phase, at(n)).Rate(from, to)
			for _, f := range p.of(at(n), phase) {
				sum := flows.Flow(f.Name).Between(from, to)
				g.Retransmitted += sum.Retransmits
				g.Lost += sum.LostDatagrams
			}
			if n < len(d.first.Groups) && n < len(d.last.Groups) && d.last.Groups[n].Drops >= d.first.Groups[n].Drops {
				g.Drops = d.last.Groups[n].Drops - d.first.Groups[n].Drops
			}
			g.Inside = node.Leaf && g.Wanted <= g.Guarantee
			g.Verdict = verdictOf(g.Received, float64(g.Guarantee), float64(g.Wanted), float64(g.Share), p.tolerance)
			groups = append(groups, g)
		}
	}
	return groups, control
}

// fairShares returns the allocation that package share computes for each node of the tree
// from the groups' demands, after control traffic has taken its part.
func fairShares(t group.Tree, wants []unit.Rate, control unit.Rate) []unit.Rate {
	spare := map[group.Spare]share.Spare{group.Proportional: share.Proportional, group.Equal: share.Equal, group.Priority: share.Priority}[t.Spare]
	var claims []share.Claim
	for i, n := range t.Nodes {
		claims = append(claims, share.Claim{
			Parent: n.Parent, Guarantee: n.Guarantee, Ceiling: n.Ceiling, Weight: uint64(t.Weight(n)), Priority: n.Priority, Demand: wants[i],
		})
	}
	claims = append(claims, share.Claim{Parent: -1, Guarantee: control, Ceiling: t.Limit, Demand: control})
	return share.Allocate(t.Limit, spare, claims)[:len(t.Nodes)]
}

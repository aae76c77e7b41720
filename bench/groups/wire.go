package groups

import (
	"context"
	"fmt"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/bench/peers"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/unit"
)

// wireCase is a full link of one rate, with shaping at one place.
type wireCase struct {
	limit unit.Rate
	way   string
}

// wireLimits are those of the targets. wireWays are the places of shaping: where packets leave their
// sender, where they arrive at their receiver, and where they arrive from a guest at the host that
// forwards them.
var (
	wireLimits = []unit.Rate{50 * unit.Mbit, 200 * unit.Mbit, 400 * unit.Mbit, 600 * unit.Mbit, 900 * unit.Mbit, unit.Gbit, 2 * unit.Gbit}
	wireWays   = []string{"out", "in", "guest"}
)

// wireSmoke is the case of a smoke run.
var wireSmoke = wireCase{600 * unit.Mbit, "guest"}

func (c wireCase) id(what string) string {
	return fmt.Sprintf("wire/%dMbit/%s/%s", c.limit/unit.Mbit, c.way, what)
}

// Peers: HTB with FIFO leaves, whose total rate and processor time are compared, and HTB with leaves
// that segment every super-packet.
const cutName = "HTB by hand, cutting"

var wirePeers = []string{htbName, cutName, plainName}

func (c wireCase) claims() []bench.Claim {
	return []bench.Claim{
		bench.NewClaim(c.id("total"), "total rate, relative to HTB by hand", wireTotal, wirePeers...),
		bench.NewClaim(c.id("cpu"), "processor time, relative to HTB by hand", wireCPU, wirePeers...),
		bench.NewClaim(c.id("ping"), "p99 of the round-trip time in the quiet group", wirePing, wirePeers...),
		bench.NewClaim(c.id("inside"), "retransmissions of a connection within its guarantee", wireInside, wirePeers...),
	}
}

// wireFlows are the greedy connections.
const wireFlows = 4

// direction has a quiet group, a group whose connection stays within its guarantee, and one for the
// greedy connections.
func (c wireCase) direction() group.Direction {
	bulk := leaf("bulk", 70)
	bulk.Default = true
	var greedy group.Selector
	for i := range uint16(wireFlows) {
		greedy.DPort = append(greedy.DPort, group.SingleRange(basePort+2+i))
	}
	bulk.Match = []group.Selector{greedy}
	quiet, inside := leaf("quiet", 10), leaf("inside", 20)
	quiet.Match, inside.Match = port(basePort), port(basePort+1)
	return group.Direction{Limit: c.limit, Groups: []group.Group{quiet, inside, bulk}}
}

func (c wireCase) timing(quick bool) (settle, measure time.Duration) {
	if quick {
		return 600 * time.Millisecond, 1000 * time.Millisecond
	}
	return 1500 * time.Millisecond, 5 * time.Second
}

// limiter by name; queues of HTB by hand hold 20 ms, or 250 KB.
func (c wireCase) limiter(name string) (limiter, error) {
	queue := max(fifoLeaf, unit.Bytes(c.limit.BytesPerSecond()/50))
	switch name {
	case htbName:
		return peers.HTB{Leaf: queue}, nil
	case cutName:
		return peers.HTB{Leaf: queue, Cut: true}, nil
	}
	return newLimiter(name)
}

// plan is for one limiter. Peers have no perspective: a guest's packets are incoming.
func (c wireCase) plan(name string) (p shaper.Plan, node string, err error) {
	p, err = plan(c.direction(), c.way == "in" || c.way == "guest" && name != bench.Ours)
	if c.way != "guest" {
		return p, "server", err
	}
	p.Dev = "client"
	if name == bench.Ours {
		p.Perspective = group.Guest
	}
	return p, "router", err
}

// wireFound is the result of one limiter. Rates are in bit/s.
type wireFound struct {
	Rate        float64 `json:"rate"`
	Processors  float64 `json:"busy_processors"`
	P99Ms       float64 `json:"ping_p99_ms"`
	MaxMs       float64 `json:"ping_max_ms"`
	Inside      uint64  `json:"retransmitted_inside"`
	InsideRate  float64 `json:"rate_inside"`
	Bulk        uint64  `json:"retransmitted_bulk"`
	LostProbes  uint64  `json:"lost_probes"`
	Congestions string  `json:"congestion_control"`
	// Dropped is the number of packets of the group inside that Headgate dropped; nil for a peer.
	Dropped *uint64 `json:"dropped_inside,omitempty"`
}

func (c wireCase) measure(ctx context.Context, quick bool, name string) (w wireFound, err error) {
	settle, length := c.timing(quick)
	p, node, err := c.plan(name)
	if err != nil {
		return w, err
	}
	made, err := c.limiter(name)
	if err != nil {
		return w, err
	}
	from, to := ends(c.way != "out")
	flows := []traffic.Flow{{
		Name: "inside", From: from, To: to, Protocol: traffic.TCP, Congestion: "cubic", DstPort: basePort + 1, Schedule: traffic.Constant(c.limit * 16 / 100),
	}}
	for i := range uint16(wireFlows) {
		flows = append(flows, traffic.Flow{
			Name: fmt.Sprintf("bulk%d", i), From: from, To: to, Protocol: traffic.TCP, Congestion: "cubic", DstPort: basePort + 2 + i, Schedule: traffic.Constant(greedy),
		})
	}
	used := &busyPart{from: settle, to: settle + length}
	f, err := trial{
		limiter: name, made: made, node: node, plan: p, flows: flows, length: settle + length, sample: 100 * time.Millisecond, bin: 10 * time.Millisecond,
		probe: &traffic.Probe{Name: "quiet", From: from, To: to, DstPort: basePort, Every: 5 * time.Millisecond}, busy: used,
	}.run(ctx)
	if err != nil {
		return w, err
	}
	w.Processors = used.processors
	for i, flow := range flows {
		rate := f.arrivals[flow.Name].Rate(settle, settle+length)
		w.Rate += rate
		iv := f.traffic.Flows[i].Between(settle, settle+length)
		if flow.Name == "inside" {
			w.Inside, w.InsideRate, w.Congestions = iv.Retransmits, rate, f.traffic.Flows[i].Congestion
		} else {
			w.Bulk += iv.Retransmits
		}
	}
	if f.state != nil {
		for _, g := range countersOf(f.state, p.In != nil).Groups {
			if g.Path == "inside" {
				w.Dropped = &g.Drops
			}
		}
	}
	at := func(d time.Duration) int64 { return f.traffic.StartMonotonicNs + int64(d) }
	ping := f.probe.Between(at(settle), at(settle+length-100*time.Millisecond))
	w.P99Ms, w.MaxMs, w.LostProbes = ping.P99Us/1e3, ping.MaxUs/1e3, f.probe.Lost
	return w, nil
}

func (c wireCase) run(ctx context.Context, r *bench.Run) error {
	others := wirePeers[1:]
	if r.Quick {
		others = nil
		if c != wireSmoke && leftOut(r) {
			return nil
		}
	}
	hand, err := c.measure(ctx, r.Quick, htbName)
	if err != nil {
		return fmt.Errorf("%s: %w", htbName, err)
	}
	c.judge(r.Sheet(htbName), hand, hand)
	for _, name := range append([]string{bench.Ours}, others...) {
		w, err := c.measure(ctx, r.Quick, name)
		if err != nil {
			if err := peerError(r.Sheet(name), err); err != nil {
				return err
			}
			continue
		}
		c.judge(r.Sheet(name), w, hand)
	}
	return nil
}

func (c wireCase) judge(s *bench.Sheet, w, hand wireFound) {
	s.Keep("found", w)
	s.Set(c.id("total"), 100*w.Rate/hand.Rate)
	s.Set(c.id("cpu"), w.Processors/hand.Processors)
	s.Set(c.id("ping"), w.P99Ms)
	s.Set(c.id("inside"), float64(w.Inside))
	s.Note(c.id("total"), "%s Mbit/s", bench.Number(w.Rate/1e6))
	s.Note(c.id("cpu"), "%s busy processors", bench.Number(w.Processors))
	s.Note(c.id("ping"), "at most %s ms", bench.Number(w.MaxMs))
	s.Note(c.id("inside"), "%d retransmissions of the greedy connections", w.Bulk)
	if w.Dropped != nil {
		s.Note(c.id("inside"), "the engine itself dropped %d of the group's packets in the whole run; other retransmissions are due to TCP's timers", *w.Dropped)
	}
}

func wireBenches() (out []bench.Case) {
	for _, limit := range wireLimits {
		for _, way := range wireWays {
			c := wireCase{limit, way}
			out = append(out, bench.Case{
				Name: c.id("")[:len(c.id(""))-1], Claims: c.claims(), Run: c.run,
				Takes: func(quick bool) time.Duration {
					settle, measure := c.timing(quick)
					one := settle + measure + overhead
					switch {
					case !quick:
						return time.Duration(1+len(wirePeers)) * one
					case c == wireSmoke:
						return 2 * one
					}
					return 0
				},
			})
		}
	}
	return out
}

package collective

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/collective"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// A case draws foundDrawn topologies, of which foundBeside are measured at the same time, each for foundFor.
const (
	foundDrawn, foundQuick  = 50, 4
	foundBeside             = 4
	foundFor, foundQuickFor = 45 * time.Second, 30 * time.Second
)

// foundTopology is connections of one set behind two or three bottlenecks:
//
//	server ── router ──rate, RTT, queue── client 1
//	            ├──────rate, RTT, queue── client 2 ...
type foundTopology struct {
	links []foundLink
}

// foundLink is a bottleneck with members of the set, and other connections.
type foundLink struct {
	rate            unit.Rate
	rtt             time.Duration
	queue           float64 // in bandwidth-delay products
	kind            string  // droptail, red or codel
	members, rivals int
	control         string // of the members
}

func drawTopology(rnd *rand.Rand) (t foundTopology) {
	for range 2 + rnd.IntN(2) {
		t.links = append(t.links, foundLink{
			rate: unit.Rate(5e6 * math.Pow(5, rnd.Float64())), rtt: time.Duration(10+rnd.IntN(90)) * time.Millisecond, queue: 0.5 + 1.5*rnd.Float64(),
			kind: []string{"droptail", "droptail", "red", "codel"}[rnd.IntN(4)], members: 1 + rnd.IntN(3), rivals: rnd.IntN(3), control: []string{"cubic", "reno"}[rnd.IntN(2)],
		})
	}
	return t
}

func foundCase(d *bench.Draw) bench.Case {
	drawn := d.For("found").Seed()
	return bench.Case{
		Name: "found",
		Claims: []bench.Claim{
			bench.NewClaim("found/precision", "pairs of connections that share a bottleneck, of those that are found to", bench.Target{Op: ">=", Value: 0.95}),
			bench.NewClaim("found/recall", "pairs that are found, of those that share a bottleneck", bench.Target{Op: ">=", Value: 0.9}),
		},
		Drawn: fmt.Sprintf("%d topologies of seed %d", foundDrawn, drawn),
		Takes: func(quick bool) time.Duration {
			n := bench.Pick(quick, foundQuick, foundDrawn)
			return time.Duration((n+foundBeside-1)/foundBeside) * (bench.Pick(quick, foundQuickFor, foundFor) + 5*time.Second)
		},
		Alongside: func(quick bool) string { return alongside(quick, "") },
		Run: func(ctx context.Context, r *bench.Run) error {
			rnd := rand.New(rand.NewPCG(drawn, 8382))
			var topologies []foundTopology
			names := []string{}
			for i := range bench.Pick(r.Quick, foundQuick, foundDrawn) {
				topologies, names = append(topologies, drawTopology(rnd)), append(names, fmt.Sprint(i))
			}
			got, err := runEach(names, foundBeside, func(name string) (foundPairs, error) {
				i := 0
				fmt.Sscan(name, &i)
				return topologies[i].run(ctx, bench.Pick(r.Quick, foundQuickFor, foundFor))
			})
			if err != nil {
				return err
			}
			var sum foundPairs
			for _, one := range got {
				sum.right, sum.wrong, sum.missed = sum.right+one.right, sum.wrong+one.wrong, sum.missed+one.missed
			}
			sheet := r.Sheet(ours)
			sheet.Set("found/precision", float64(sum.right)/float64(max(sum.right+sum.wrong, 1)))
			sheet.Set("found/recall", float64(sum.right)/float64(max(sum.right+sum.missed, 1)))
			sheet.Note("found/precision", "%d pairs are right, %d wrong, and %d missed", sum.right, sum.wrong, sum.missed)
			return nil
		},
	}
}

// foundPairs are numbers of pairs.
type foundPairs struct{ right, wrong, missed int }

func (t foundTopology) run(ctx context.Context, length time.Duration) (out foundPairs, err error) {
	sysctl := map[string]string{"net.ipv4.tcp_ecn": "0"}
	top := &lab.Topology{Name: lab.UniqueName("bench"), Nodes: []lab.NodeSpec{{Name: "server", Sysctl: sysctl}, {Name: "router", Router: true}}, Links: []lab.LinkSpec{{Ends: [2]string{"server", "router"}}}}
	port := nextPorts(64)
	var flows []traffic.Flow
	at := map[uint16]int{} // the bottleneck of a member, by port
	for i, l := range t.links {
		client := fmt.Sprint("client", i)
		queue := max(int(l.queue*float64(l.rate)/8*l.rtt.Seconds()/1514), fewestQueued)
		s := link.Spec{Rate: l.rate, Delay: l.rtt / 2, Queue: link.Amount{Segments: queue}}
		switch l.kind {
		case "red":
			s.RED = &link.RED{Profile: link.Profile{Min: link.Amount{Segments: max(queue/6, 2)}, Max: link.Amount{Segments: max(queue/2, 6)}, Probability: 0.1}}
		case "codel":
			s.CoDel = &link.CoDel{}
		}
		top.Nodes = append(top.Nodes, lab.NodeSpec{Name: client, Sysctl: sysctl})
		top.Links = append(top.Links, lab.LinkSpec{Ends: [2]string{"router", client}, Backend: lab.Emulator, Forward: lab.Path{Spec: s}, Back: lab.Path{Spec: link.Spec{Delay: l.rtt / 2}}})
		for k := range l.members + l.rivals {
			p := port + uint16(8*i+k)
			if k < l.members {
				at[p] = i
			} else {
				p += 32
			}
			flows = append(flows, traffic.Flow{
				Name: fmt.Sprint("flow", p), From: "server", To: client, Protocol: traffic.TCP, DstPort: p, Congestion: l.control,
				Start: time.Duration(k) * 300 * time.Millisecond, Schedule: traffic.Constant(traffic.Unlimited),
			})
		}
	}
	l, err := lab.Up(ctx, top)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	d, err := watch(ctx, set{name: "app", scaleControl: ours, per: "bottleneck", rules: []string{fmt.Sprintf("dport: %d-%d", port, port+31)}})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	if _, err := traffic.Run(ctx, l.Host, flows, traffic.Options{Duration: length}); err != nil {
		return out, err
	}
	groups := d.bottlenecks("app", len(at))
	for a, x := range at {
		for b, y := range at {
			if a >= b {
				continue
			}
			switch together := groups[a] != 0 && groups[a] == groups[b]; {
			case x == y && together:
				out.right++
			case x == y:
				out.missed++
			case together:
				out.wrong++
			}
		}
	}
	return out, nil
}

// bottlenecks returns the bottlenecks in which connections of a set were found the last time that there were all of them, by remote port.
func (d *daemon) bottlenecks(name string, connections int) map[uint16]collective.ID {
	by := map[time.Duration]map[uint16]collective.ID{}
	last := time.Duration(0)
	for _, s := range d.of(name) {
		if by[s.At] == nil {
			by[s.At] = map[uint16]collective.ID{}
		}
		for _, c := range s.Connections {
			by[s.At][portOf(c.Remote)] = s.Bottleneck
		}
		if len(by[s.At]) == connections {
			last = max(last, s.At)
		}
	}
	return by[last]
}

func portOf(endpoint string) uint16 {
	a, _ := netip.ParseAddrPort(endpoint)
	return a.Port()
}

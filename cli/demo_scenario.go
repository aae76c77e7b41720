package cli

import (
	"fmt"
	"time"

	"headgate/group"
	"headgate/lab"
	"headgate/lab/traffic"
	"headgate/unit"
)

// scenario is what the demo shows: who wants how much when. It is plain data.
type scenario struct {
	engine group.Engine
	fast   bool
	phases []demoPhase
	flows  []demoFlow
	// tolerance is the part of a guarantee that may be missing.
	tolerance float64
}

// demoPhase is one scene.
type demoPhase struct {
	title  string
	says   string
	at     time.Duration // from the start of the traffic
	length time.Duration
	// settle is the beginning that is not counted: connections begin slowly, and
	// queues of the phase before empty.
	settle time.Duration
	shares demoShares
	// act is what is done to the groups at the beginning; nil for nothing.
	act func(*play) error
}

// demoShares are the guarantees that change.
type demoShares struct{ storage, web unit.Share }

// demoFlow is a connection, or a stream of datagrams, of one group.
type demoFlow struct {
	traffic.Flow
	direction, group string
	wants            []unit.Rate // by phase
}

// The link: what Headgate divides, and the real bottlenecks behind, at 101 %.
const (
	demoOut, demoIn         = 100 * unit.Mbit, 80 * unit.Mbit
	demoOutReal, demoInReal = demoOut / 100 * 101, demoIn / 100 * 101
	// demoDev is the server's device; it leads to the node of that name.
	demoDev = "uplink"
)

// The phases, by their place.
const (
	phaseQuiet = iota
	phaseOverload
	phaseIdle
	phaseReturn
	phaseMove
	phaseChange
	demoPhases
)

// demoMoved is the connection that changes its group: the rules put it in rest.
const demoMoved = "download"

// movedTo is where it goes.
const movedTo = "web"

// demoTiming is how long phases last, and how much of each is not counted.
type demoTiming struct{ length, settle [demoPhases]time.Duration }

// Ours. Overload settles slowest: all of TCP begins at once, and what comes in
// loses packets at the real bottleneck, out of our reach, until it has slowed
// down. With both cores busy elsewhere that took 2 s.
var (
	demoTimes = demoTiming{
		length: seconds(8, 14, 10, 10, 11, 10),
		settle: seconds(2, 5, 2, 2, 2, 2),
	}
	demoFastTimes = demoTiming{
		length: seconds(1.5, 4.5, 2.5, 2.5, 3, 3.5),
		settle: seconds(0.5, 2.5, 1, 1, 1.2, 1.5),
	}
)

func seconds(s ...float64) (out [demoPhases]time.Duration) {
	for i, v := range s {
		out[i] = time.Duration(v * float64(time.Second))
	}
	return out
}

// The part of a guarantee that may be missing. Ours: of 6 to 9 s, and of 1 to
// 2 s. The programs that send and receive need the same two cores as the rest of
// the machine.
const demoTolerance, demoFastTolerance = 0.05, 0.10

func newScenario(engine group.Engine, fast bool) scenario {
	s := scenario{engine: engine, fast: fast, tolerance: demoTolerance}
	times := demoTimes
	if fast {
		times, s.tolerance = demoFastTimes, demoFastTolerance
	}
	before, after := demoShares{storage: 400_000, web: 300_000}, demoShares{storage: 250_000, web: 450_000}
	s.phases = []demoPhase{
		phaseQuiet: {
			title: "all quiet", shares: before,
			says: "Everyone uses a fifth of its guarantee. There is nothing to divide.",
		},
		phaseOverload: {
			title: "overload", shares: before,
			says: "Everyone wants everything, and backup floods 30Mbit of UDP that does not slow down. Each group has its guarantee.",
		},
		phaseIdle: {
			title: "storage goes idle", shares: before,
			says: "What storage leaves is lent at once: to web and rest by their guarantees, to backup only up to its ceiling.",
		},
		phaseReturn: {
			title: "storage returns", shares: before,
			says: "Storage wants everything again, and takes its guarantee back.",
		},
		phaseMove: {
			title: "a connection moves", shares: before,
			says: "A download from port 9000 is in rest, by the rules. It is put in web, while it runs. Rest then wants less than its guarantee, and must lose nothing.",
			act:  (*play).moveConnection,
		},
		phaseChange: {
			title: "a guarantee changes", shares: after,
			says: "Storage goes from 40% to 25% and web from 30% to 45%, while everything flows.",
			act:  (*play).applyConfig,
		},
	}
	if !s.ceilings() {
		s.phases[phaseIdle].says = "What storage leaves goes to a pool, step by step, and from there to the others."
	}
	var at time.Duration
	for i := range s.phases {
		s.phases[i].at, s.phases[i].length, s.phases[i].settle = at, times.length[i], times.settle[i]
		at += times.length[i]
	}
	s.addFlows()
	return s
}

// addFlows says who wants what. In the quiet phase a group wants a fifth of its
// guarantee. What comes in is TCP but for a small stream: datagrams that nobody
// slows down fill the real bottleneck, and no limit at this end can help.
func (s *scenario) addFlows() {
	all := traffic.Unlimited
	busy := func(quietly, busily unit.Rate) []unit.Rate {
		return []unit.Rate{quietly, busily, busily, busily, busily, busily}
	}
	pausing := func(quietly unit.Rate) []unit.Rate { return []unit.Rate{quietly, all, 0, all, all, all} }
	const kbit, mbit = unit.Kbit, unit.Mbit
	const cs1 = 8
	for _, f := range []struct {
		group, name, client string
		port                uint16 // of the server
		proto               traffic.Protocol
		dscp                uint8
		out, in             []unit.Rate
	}{
		{"storage", "storage-1", "client1", 3260, traffic.TCP, 0, pausing(4 * mbit), pausing(3200 * kbit)},
		{"storage", "storage-2", "client1", 3260, traffic.TCP, 0, pausing(4 * mbit), pausing(3200 * kbit)},
		{"web", "web-1", "client2", 443, traffic.TCP, 0, busy(3*mbit, all), busy(2400*kbit, all)},
		{"web", "web-2", "client2", 443, traffic.TCP, 0, busy(3*mbit, all), busy(2400*kbit, all)},
		{"backup", "backup-1", "client3", 873, traffic.TCP, cs1, nil, busy(800*kbit, all)},
		{"backup", "backup-2", "client3", 873, traffic.TCP, cs1, nil, busy(800*kbit, all)},
		{"backup", "backup-flood", "client3", 0, traffic.UDP, cs1, busy(2*mbit, 30*mbit), nil},
		{"rest", "calls", "client2", 5060, traffic.UDP, 0, busy(1500*kbit, 10*mbit), busy(1000*kbit, 4*mbit)},
		{"rest", demoMoved, "client3", 9000, traffic.TCP, 0, busy(1500*kbit, all), nil},
		{"rest", "upload-1", "client3", 9001, traffic.TCP, 0, nil, busy(700*kbit, all)},
		{"rest", "upload-2", "client3", 9001, traffic.TCP, 0, nil, busy(700*kbit, all)},
	} {
		base := traffic.Flow{Protocol: f.proto, DSCP: f.dscp}
		if f.out != nil {
			flow := base
			flow.Name, flow.From, flow.To, flow.SrcPort, flow.Download = f.name+" out", "server", f.client, f.port, f.proto == traffic.TCP
			s.add(demoFlow{Flow: flow, direction: "out", group: f.group, wants: f.out})
		}
		if f.in != nil {
			flow := base
			flow.Name, flow.From, flow.To, flow.DstPort = f.name+" in", f.client, "server", f.port
			s.add(demoFlow{Flow: flow, direction: "in", group: f.group, wants: f.in})
		}
	}
}

func (s *scenario) add(f demoFlow) {
	for i, p := range s.phases {
		f.Schedule = append(f.Schedule, traffic.Step{At: p.at, Rate: f.wants[i]})
	}
	s.flows = append(s.flows, f)
}

// groupIn is the flow's group in a phase.
func (f demoFlow) groupIn(phase int) string {
	if phase >= phaseMove && f.Name == demoMoved+" out" {
		return movedTo
	}
	return f.group
}

// wanted is what a group wants in a phase, at most what fits any link.
func (s scenario) wanted(phase int, direction, group string) (sum unit.Rate) {
	for _, f := range s.flows {
		if f.direction == direction && f.groupIn(phase) == group {
			sum = min(sum+f.wants[phase], unit.MaxRate)
		}
	}
	return sum
}

// length is how long the traffic runs.
func (s scenario) length() time.Duration {
	last := s.phases[len(s.phases)-1]
	return last.at + last.length
}

// counted is the part of a phase that is measured, from the start of the traffic.
func (s scenario) counted(phase int) (from, to time.Duration) {
	p := s.phases[phase]
	return p.at + p.settle, p.at + p.length
}

// network is the server behind its bottleneck, and three clients.
func (s scenario) network(name string) *lab.Topology {
	host := func(name string) lab.NodeSpec {
		// ECN lets Headgate slow TCP down by marks before a queue builds.
		return lab.NodeSpec{Name: name, Sysctl: map[string]string{"net.ipv4.tcp_ecn": "1"}}
	}
	t := &lab.Topology{
		Name: name,
		Nodes: []lab.NodeSpec{
			host("server"), {Name: demoDev, Router: true}, {Name: "internet", Router: true},
			host("client1"), host("client2"), host("client3"),
		},
		Links: []lab.LinkSpec{
			{Ends: [2]string{"server", demoDev}},
			{Ends: [2]string{demoDev, "internet"}, Forward: lab.Limited(demoOutReal), Back: lab.Limited(demoInReal)},
		},
	}
	for _, client := range []string{"client1", "client2", "client3"} {
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{"internet", client}})
	}
	return t
}

const demoPicture = `  client1 --+
  client2 --+-- internet ============ uplink -- server
  client3 --+      the real bottleneck:         headgate divides
                   %v / %v           %v out, %v in`

func (s scenario) picture() string {
	return fmt.Sprintf(demoPicture, demoOutReal, demoInReal, demoOut, demoIn)
}

// ceilings tells whether the engine has them: the seed's algorithm does not.
func (s scenario) ceilings() bool { return s.engine != group.Quantum }

// config is what a user would write for that server. The guarantees leave 5 %
// for acknowledgements, which belong to no group.
func (s scenario) config(shares demoShares) string {
	ceiling := ""
	if s.ceilings() {
		ceiling = "ceiling: 15%, "
	}
	groups := func(port string) string {
		return fmt.Sprintf(`  groups:
    - {name: storage, guarantee: %[1]v, match: [{proto: tcp, %[3]s: 3260}]}
    - {name: web, guarantee: %[2]v, match: [{proto: tcp, %[3]s: [80, 443]}]}
    - {name: backup, guarantee: 10%%, %[4]smatch: [{dscp: cs1}]}
    - {name: rest, guarantee: 15%%, default: true}
`, shares.storage, shares.web, port, ceiling)
	}
	return fmt.Sprintf("kind: Interface\ndev: %s\nengine: %s\nout:\n  limit: %v\n%sin:\n  limit: %v\n%s",
		demoDev, s.engine, demoOut, groups("sport"), demoIn, groups("dport"))
}

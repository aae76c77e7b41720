package cli

import (
	"context"
	"strings"
	"time"

	"headgate/group"
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
	// act is what is done to the groups at the beginning; nil for nothing.
	act func(*play, context.Context) error
}

// demoFlow is a connection, or a stream of datagrams, of one group.
type demoFlow struct {
	traffic.Flow
	host, direction, group string
	wants                  []unit.Rate // by phase
}

// The phases, by their place.
const (
	phaseQuiet = iota
	phaseOverload
	phaseIdle
	phaseReturn
	phaseDeadline
	phaseBack
	phaseMove
	demoPhases
)

// demoMoved is the connection that changes its group: the rules put it in web.
const demoMoved = "download"

// demoTiming is how long phases last, and how much of each is not counted.
type demoTiming struct{ length, settle [demoPhases]time.Duration }

// Ours. Overload settles slowest: all of TCP begins at once, and what comes in
// loses packets at the real bottleneck, out of our reach, until it has slowed
// down. With both cores busy elsewhere that took 2 s.
var (
	demoTimes = demoTiming{
		length: seconds(8, 12, 8, 8, 9, 8, 9),
		settle: seconds(2, 5, 2, 2, 2, 2, 2),
	}
	demoFastTimes = demoTiming{
		length: seconds(1.5, 4.5, 2.5, 2.5, 3.5, 3, 3.5),
		settle: seconds(0.5, 2.5, 1, 1, 1.5, 1.2, 1.5),
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
	s.phases = []demoPhase{
		phaseQuiet: {
			title: "all quiet",
			says:  "Everyone uses a fifth of its guarantee. There is nothing to divide.",
		},
		phaseOverload: {
			title: "overload",
			says:  "Everyone wants everything, and backup floods 30Mbit of UDP that does not slow down. Each tenant has its guarantee, and in it each group. What a tenant has not given to a group is lent to its own groups first.",
		},
		phaseIdle: {
			title: "storage goes idle",
			says:  "What storage leaves is lent at once: to backup up to its ceiling, and then to the other tenant.",
		},
		phaseReturn: {
			title: "storage returns",
			says:  "Storage wants everything again, and takes its guarantee back.",
		},
		phaseDeadline: {
			title: "a deadline nears",
			says:  "Shop's export has to be out soon. Shop's own program asks the service for more, with shop's token.",
			act:   (*play).askForMore,
		},
		phaseBack: {
			title: "the deadline is past",
			says:  "The program gives back what it does not need any more.",
			act:   (*play).giveBack,
		},
		phaseMove: {
			title: "a connection moves",
			says:  "A download from port 9000 is in web, by the rules. Shop puts it in export, while it runs. Web then wants less than its guarantee, and must lose nothing.",
			act:   (*play).moveConnection,
		},
	}
	if !s.nested() {
		s.phases[phaseOverload].says = "Everyone wants everything, and backup floods 30Mbit of UDP that does not slow down. Each group should have its guarantee."
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
	ever := func(quietly, busily unit.Rate) []unit.Rate {
		wants := []unit.Rate{quietly}
		for range demoPhases - 1 {
			wants = append(wants, busily)
		}
		return wants
	}
	pausing := func(quietly unit.Rate) []unit.Rate {
		wants := ever(quietly, all)
		wants[phaseIdle] = 0
		return wants
	}
	const kbit, mbit = unit.Kbit, unit.Mbit
	main, storage, backup := demoHosts[0], s.path("media", "storage"), s.path("media", "backup")
	export, web := s.path("shop", "export"), s.path("shop", "web")
	for _, f := range []struct {
		host, group, name, peer string
		port                    uint16 // of the host
		proto                   traffic.Protocol
		out, in                 []unit.Rate
	}{
		{main, storage, "storage-1", "client1", 3260, traffic.TCP, pausing(4 * mbit), pausing(3200 * kbit)},
		{main, storage, "storage-2", "client1", 3260, traffic.TCP, pausing(4 * mbit), pausing(3200 * kbit)},
		{main, backup, "backup-1", "client1", 873, traffic.TCP, nil, ever(800*kbit, all)},
		{main, backup, "backup-2", "client1", 873, traffic.TCP, nil, ever(800*kbit, all)},
		{main, backup, "backup-flood", "client1", 0, traffic.UDP, ever(2*mbit, 30*mbit), nil},
		{main, export, "export-1", "client2", 443, traffic.TCP, ever(2500*kbit, all), ever(1600*kbit, all)},
		{main, export, "export-2", "client2", 443, traffic.TCP, ever(1500*kbit, all), ever(1600*kbit, all)},
		{main, web, "calls", "client2", 5060, traffic.UDP, ever(1*mbit, 8*mbit), ever(800*kbit, 4*mbit)},
		{main, web, demoMoved, "client3", 9000, traffic.TCP, ever(1*mbit, all), nil},
		{main, web, "upload-1", "client3", 9001, traffic.TCP, nil, ever(400*kbit, all)},
		{main, web, "upload-2", "client3", 9001, traffic.TCP, nil, ever(400*kbit, all)},
		// One tenant is greedy on each of the others, the other not.
		{"host2", "media", "copy-2", "host3", 3260, traffic.TCP, ever(1*mbit, all), nil},
		{"host2", "shop", "orders-2", "host3", 5060, traffic.UDP, ever(900*kbit, 2*mbit), nil},
		{"host3", "media", "stream-3", "host2", 5004, traffic.UDP, ever(1*mbit, 2*mbit), nil},
		{"host3", "shop", "orders-3", "host2", 8080, traffic.TCP, ever(900*kbit, all), nil},
	} {
		if f.out != nil {
			flow := traffic.Flow{Protocol: f.proto, Name: f.name + " out", From: f.host, To: f.peer, SrcPort: f.port, Download: f.proto == traffic.TCP}
			s.add(demoFlow{Flow: flow, host: f.host, direction: "out", group: f.group, wants: f.out})
		}
		if f.in != nil {
			flow := traffic.Flow{Protocol: f.proto, Name: f.name + " in", From: f.peer, To: f.host, DstPort: f.port}
			s.add(demoFlow{Flow: flow, host: f.host, direction: "in", group: f.group, wants: f.in})
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
func (s scenario) groupIn(f demoFlow, phase int) string {
	if phase >= phaseMove && f.Name == demoMoved+" out" {
		return s.path("shop", "export")
	}
	return f.group
}

// demoPlace is a group of a host, or all that is in it.
type demoPlace struct{ host, direction, group string }

// of are the flows of a place in a phase.
func (s scenario) of(at demoPlace, phase int) (flows []demoFlow) {
	for _, f := range s.flows {
		in := s.groupIn(f, phase)
		if f.host == at.host && f.direction == at.direction && (in == at.group || strings.HasPrefix(in, at.group+"/")) {
			flows = append(flows, f)
		}
	}
	return flows
}

// wanted is what a group wants in a phase, at most what fits any link.
func (s scenario) wanted(phase int, at demoPlace) (sum unit.Rate) {
	for _, f := range s.of(at, phase) {
		sum = min(sum+f.wants[phase], unit.MaxRate)
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

package cli

import (
	"context"
	"strings"
	"time"

	"headgate/group"
	"headgate/lab/traffic"
	"headgate/unit"
)

// demoScenario describes the demo: its phases, and the demand of each flow in each phase.
type demoScenario struct {
	engine group.Engine
	fast   bool
	phases []demoPhase
	flows  []demoFlow
	// tolerance is the fraction by which a rate may be below the guarantee.
	tolerance float64
}

// demoPhase is one phase of the demo.
type demoPhase struct {
	title       string
	checkOutput string
	at          time.Duration // from the start of the traffic
	length      time.Duration
	// settle is the length of the beginning that is not measured: connections start slowly,
	// and queues of the phase before drain.
	settle time.Duration
	// act changes the groups at the beginning of the phase; nil for no change.
	act func(*play, context.Context) error
}

// demoFlow is a connection, or a stream of datagrams, of one group.
type demoFlow struct {
	traffic.Flow
	host, direction, group string
	wants                  []unit.Rate // the demand, by phase
}

// The phases, by index.
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

// demoMoved is the connection that is assigned to another group. The rules put it in web.
const demoMoved = "download"

// demoTiming has the lengths of the phases, and how much of each is not measured.
type demoTiming struct{ length, settle [demoPhases]time.Duration }

// The timing of the full and of the fast demo. Overload settles slowest: all TCP flows
// start at once, and ingress traffic loses packets at the real bottleneck, where Headgate
// does not control the queue, until TCP has slowed down. With both cores busy with other
// work that took 2 s.
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

// The tolerances of rates measured over 6 to 9 s, and of rates measured over 1 to 2 s.
// The programs that send and receive share two cores with the rest of the machine.
const demoTolerance, demoFastTolerance = 0.05, 0.10

func newScenario(engine group.Engine, fast bool) demoScenario {
	s := demoScenario{engine: engine, fast: fast, tolerance: demoTolerance}
	times := demoTimes
	if fast {
		times, s.tolerance = demoFastTimes, demoFastTolerance
	}
	s.phases = []demoPhase{
		phaseQuiet: {
			title:       "all quiet",
			checkOutput: "Every group uses a fifth of its guarantee. The link is not congested.",
		},
		phaseOverload: {
			title:       "overload",
			checkOutput: "All groups have unlimited demand, and backup sends 30Mbit of UDP that does not slow down. Each tenant gets its guarantee, and so does each group in it. The unallocated part of a tenant's guarantee is lent to the tenant's own groups first.",
		},
		phaseIdle: {
			title:       "storage goes idle",
			checkOutput: "Storage's unused guarantee is lent at once: to backup up to its ceiling, and then to the other tenant.",
		},
		phaseReturn: {
			title:       "storage returns",
			checkOutput: "Storage has unlimited demand again, and gets its guarantee back.",
		},
		phaseDeadline: {
			title:       "a deadline nears",
			checkOutput: "Shop's export has a deadline. Shop's own program requests a higher guarantee from the service, with shop's token.",
			act:         (*play).requestMore,
		},
		phaseBack: {
			title:       "the deadline is past",
			checkOutput: "The program sets the guarantee back to its former value.",
			act:         (*play).restoreGuarantee,
		},
		phaseMove: {
			title:       "a connection moves",
			checkOutput: "The rules put a download from port 9000 in web. Shop assigns it to export while it is running. Then the demand of web is below its guarantee, and web must lose nothing.",
			act:         (*play).moveConnection,
		},
	}
	if !s.nested() {
		s.phases[phaseOverload].checkOutput = "All groups have unlimited demand, and backup sends 30Mbit of UDP that does not slow down. Each group should get its guarantee."
		s.phases[phaseIdle].checkOutput = "Storage's unused guarantee goes to a pool, step by step, and from there to the other groups."
	}
	var at time.Duration
	for i := range s.phases {
		s.phases[i].at, s.phases[i].length, s.phases[i].settle = at, times.length[i], times.settle[i]
		at += times.length[i]
	}
	s.addFlows()
	return s
}

// addFlows sets the demand of each flow. In the quiet phase the demand of a group is a
// fifth of its guarantee. Ingress traffic is TCP, except for a small UDP stream: UDP
// without congestion control fills the real bottleneck, which no limit at the receiver prevents.
func (s *demoScenario) addFlows() {
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
		// On each of the other hosts, one tenant has unlimited demand and one has little.
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

func (s *demoScenario) add(f demoFlow) {
	for i, p := range s.phases {
		f.Schedule = append(f.Schedule, traffic.Step{At: p.at, Rate: f.wants[i]})
	}
	s.flows = append(s.flows, f)
}

// groupIn returns the flow's group in a phase.
func (s demoScenario) groupIn(f demoFlow, phase int) string {
	if phase >= phaseMove && f.Name == demoMoved+" out" {
		return s.path("shop", "export")
	}
	return f.group
}

// demoPlace is a group in one direction of a host, with its child groups.
type demoPlace struct{ host, direction, group string }

// of returns the flows of a place in a phase.
func (s demoScenario) of(at demoPlace, phase int) (flows []demoFlow) {
	for _, f := range s.flows {
		in := s.groupIn(f, phase)
		if f.host == at.host && f.direction == at.direction && (in == at.group || strings.HasPrefix(in, at.group+"/")) {
			flows = append(flows, f)
		}
	}
	return flows
}

// wanted returns the demand of a group in a phase, at most unit.MaxRate.
func (s demoScenario) wanted(phase int, at demoPlace) (sum unit.Rate) {
	for _, f := range s.of(at, phase) {
		sum = min(sum+f.wants[phase], unit.MaxRate)
	}
	return sum
}

// length is the duration of the traffic.
func (s demoScenario) length() time.Duration {
	last := s.phases[len(s.phases)-1]
	return last.at + last.length
}

// counted returns the measured part of a phase, relative to the start of the traffic.
func (s demoScenario) counted(phase int) (from, to time.Duration) {
	p := s.phases[phase]
	return p.at + p.settle, p.at + p.length
}

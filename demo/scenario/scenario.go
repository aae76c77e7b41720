package scenario

import (
	"strings"
	"time"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// Scenario describes the demo: its phases, and the demand of each flow in each phase.
type Scenario struct {
	Engine group.Engine
	Fast   bool // short phases, measured with a larger tolerance
	Phases []Phase
	Flows  []Flow
	// Tolerance is the fraction by which a rate may be below the guarantee.
	Tolerance float64
}

// Phase is one phase of the demo.
type Phase struct {
	Title  string
	Text   string        // the demand, and the effect that it has
	At     time.Duration // from the start of the traffic
	Length time.Duration
	// Settle is the length of the beginning that is not measured: connections start slowly,
	// and queues of the phase before drain.
	Settle time.Duration
}

// Flow is a connection, or a stream of datagrams, of one group.
type Flow struct {
	traffic.Flow
	Host, Direction, Group string
	Demand                 []unit.Rate // by phase
}

// The phases, by index.
const (
	Quiet    = iota
	Overload // all groups have unlimited demand
	Idle     // storage has no demand
	Return   // storage has demand again
	Deadline // shop's program requests more for export, and gets ExportRaised
	Restore  // shop's program sets the guarantee back to Export
	Assign   // shop assigns the connection of the flow Download to export
	PhaseCount
)

// Download is the flow whose connection is assigned to another group. The rules put it in web.
const Download = "download out"

// timing has the lengths of the phases, and how much of each is not measured.
type timing struct{ length, settle [PhaseCount]time.Duration }

// The timing of the full and of the fast demo. Overload settles slowest: all TCP flows
// start at once, and ingress traffic loses packets at the real bottleneck, where Headgate
// does not control the queue, until TCP has slowed down. With both cores busy with other
// work that took 2 s.
var (
	fullTiming = timing{
		length: seconds(8, 12, 8, 8, 9, 8, 9),
		settle: seconds(2, 5, 2, 2, 2, 2, 2),
	}
	fastTiming = timing{
		length: seconds(1.5, 4.5, 2.5, 2.5, 3.5, 3, 3.5),
		settle: seconds(0.5, 2.5, 1, 1, 1.5, 1.2, 1.5),
	}
)

func seconds(s ...float64) (out [PhaseCount]time.Duration) {
	for i, v := range s {
		out[i] = time.Duration(v * float64(time.Second))
	}
	return out
}

// The tolerances of rates measured over 6 to 9 s, and of rates measured over 1 to 2 s.
// The programs that send and receive share two cores with the rest of the machine.
const tolerance, fastTolerance = 0.05, 0.10

// New returns the scenario for an engine. With fast, it takes 20 s instead of 60.
func New(engine group.Engine, fast bool) Scenario {
	s := Scenario{Engine: engine, Fast: fast, Tolerance: tolerance}
	times := fullTiming
	if fast {
		times, s.Tolerance = fastTiming, fastTolerance
	}
	s.Phases = []Phase{
		Quiet: {
			Title: "all quiet",
			Text:  "Every group uses a fifth of its guarantee. The link is not congested.",
		},
		Overload: {
			Title: "overload",
			Text:  "All groups have unlimited demand, and backup sends 30Mbit of UDP that does not slow down. Each tenant gets its guarantee, and so does each group in it. The unallocated part of a tenant's guarantee is lent to the tenant's own groups first.",
		},
		Idle: {
			Title: "storage goes idle",
			Text:  "Storage's unused guarantee is lent at once: to backup up to its ceiling, and then to the other tenant.",
		},
		Return: {
			Title: "storage returns",
			Text:  "Storage has unlimited demand again, and gets its guarantee back.",
		},
		Deadline: {
			Title: "a deadline nears",
			Text:  "Shop's export has a deadline. Shop's own program requests a higher guarantee from the service, with shop's token.",
		},
		Restore: {
			Title: "the deadline is past",
			Text:  "The program sets the guarantee back to its former value.",
		},
		Assign: {
			Title: "a connection moves",
			Text:  "The rules put a download from port 9000 in web. Shop assigns it to export while it is running. Then the demand of web is below its guarantee, and web must lose nothing.",
		},
	}
	if !s.Nested() {
		s.Phases[Overload].Text = "All groups have unlimited demand, and backup sends 30Mbit of UDP that does not slow down. Each group should get its guarantee."
		s.Phases[Idle].Text = "Storage's unused guarantee goes to a pool, step by step, and from there to the other groups."
	}
	var at time.Duration
	for i := range s.Phases {
		s.Phases[i].At, s.Phases[i].Length, s.Phases[i].Settle = at, times.length[i], times.settle[i]
		at += times.length[i]
	}
	s.addFlows()
	return s
}

// addFlows sets the demand of each flow. In the quiet phase the demand of a group is a
// fifth of its guarantee. Ingress traffic is TCP, except for a small UDP stream: UDP
// without congestion control fills the real bottleneck, which no limit at the receiver prevents.
func (s *Scenario) addFlows() {
	all := traffic.Unlimited
	ever := func(quietly, busily unit.Rate) []unit.Rate {
		wants := []unit.Rate{quietly}
		for range PhaseCount - 1 {
			wants = append(wants, busily)
		}
		return wants
	}
	pausing := func(quietly unit.Rate) []unit.Rate {
		wants := ever(quietly, all)
		wants[Idle] = 0
		return wants
	}
	const kbit, mbit = unit.Kbit, unit.Mbit
	main, storage, backup := Hosts[0], s.Path("media", "storage"), s.Path("media", "backup")
	export, web := s.Path("shop", "export"), s.Path("shop", "web")
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
		{main, web, "download", "client3", 9000, traffic.TCP, ever(1*mbit, all), nil},
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
			s.add(Flow{Flow: flow, Host: f.host, Direction: "out", Group: f.group, Demand: f.out})
		}
		if f.in != nil {
			flow := traffic.Flow{Protocol: f.proto, Name: f.name + " in", From: f.peer, To: f.host, DstPort: f.port}
			s.add(Flow{Flow: flow, Host: f.host, Direction: "in", Group: f.group, Demand: f.in})
		}
	}
}

func (s *Scenario) add(f Flow) {
	for i, p := range s.Phases {
		f.Schedule = append(f.Schedule, traffic.Step{At: p.At, Rate: f.Demand[i]})
	}
	s.Flows = append(s.Flows, f)
}

// groupIn returns the flow's group in a phase.
func (s Scenario) groupIn(f Flow, phase int) string {
	if phase >= Assign && f.Name == Download {
		return s.Path("shop", "export")
	}
	return f.Group
}

// Place is a group in one direction of a host, with its child groups.
type Place struct{ Host, Direction, Group string }

// FlowsIn returns the flows of a place in a phase.
func (s Scenario) FlowsIn(at Place, phase int) (flows []Flow) {
	for _, f := range s.Flows {
		in := s.groupIn(f, phase)
		if f.Host == at.Host && f.Direction == at.Direction && (in == at.Group || strings.HasPrefix(in, at.Group+"/")) {
			flows = append(flows, f)
		}
	}
	return flows
}

// Demand returns the demand of a group in a phase, at most unit.MaxRate.
func (s Scenario) Demand(at Place, phase int) (sum unit.Rate) {
	for _, f := range s.FlowsIn(at, phase) {
		sum = min(sum+f.Demand[phase], unit.MaxRate)
	}
	return sum
}

// Length is the duration of the traffic.
func (s Scenario) Length() time.Duration {
	last := s.Phases[len(s.Phases)-1]
	return last.At + last.Length
}

// Measured returns the measured part of a phase, relative to the start of the traffic.
func (s Scenario) Measured(phase int) (from, to time.Duration) {
	p := s.Phases[phase]
	return p.At + p.Settle, p.At + p.Length
}

// Repeated returns the flows with schedules that repeat all phases for the given length.
func (s Scenario) Repeated(length time.Duration) (flows []traffic.Flow) {
	for _, f := range s.Flows {
		once := f.Schedule
		f.Schedule = nil
		for at := time.Duration(0); at < length; at += s.Length() {
			for _, step := range once {
				f.Schedule = append(f.Schedule, traffic.Step{At: at + step.At, Rate: step.Rate})
			}
		}
		flows = append(flows, f.Flow)
	}
	return flows
}

// Shares returns the allocation that package share computes for each node of the tree
// from the groups' demand, after control traffic has taken its part.
func Shares(t group.Tree, demand []unit.Rate, control unit.Rate) []unit.Rate {
	spare := map[group.Spare]share.Spare{group.Proportional: share.Proportional, group.Equal: share.Equal, group.Priority: share.Priority}[t.Spare]
	var claims []share.Claim
	for i, n := range t.Nodes {
		claims = append(claims, share.Claim{
			Parent: n.Parent, Guarantee: n.Guarantee, Ceiling: n.Ceiling, Weight: uint64(t.Weight(n)), Priority: n.Priority, Demand: demand[i],
		})
	}
	claims = append(claims, share.Claim{Parent: -1, Guarantee: control, Ceiling: t.Limit, Demand: control})
	return share.Allocate(t.Limit, spare, claims)[:len(t.Nodes)]
}

package lab

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// Topology is a network as the user asks for it, and what is to happen in it.
type Topology struct {
	// Name is part of every namespace's name: letters, digits and dashes.
	Name  string
	Nodes []NodeSpec
	Links []LinkSpec
	// Flows, Programs, Timeline and Duration are for Run; a lab can be made without
	// them. A flow's ends are names of nodes.
	Flows    []traffic.Flow `json:",omitempty"`
	Programs []Program      `json:",omitempty"`
	Timeline []Event        `json:",omitempty"`
	Duration time.Duration  `json:",omitempty"`
	// Seed of all that flows draw, and links that have none of their own; 0 is another
	// one each time.
	Seed uint64 `json:",omitempty"`
}

// NodeSpec is a host or a router.
type NodeSpec struct {
	// Name is at most 11 characters, because the device that leads to a node is
	// called by its name.
	Name string
	// Router forwards packets; a host does not.
	Router bool `json:",omitempty"`
	// Sysctl are settings below /proc/sys of the node's namespace, such as
	// "net.ipv4.tcp_ecn": "1".
	Sysctl map[string]string `json:",omitempty"`
}

// LinkSpec joins two nodes.
type LinkSpec struct {
	// Name is for the timeline and the results; "" is that of its ends, "a-b", and
	// "a-b-2" for a second link between them.
	Name string `json:",omitempty"`
	Ends [2]string
	// Forward is the direction from Ends[0] to Ends[1], Back the other.
	Forward, Back Path
	// Backend is what makes the link; "" lets Topology.Backends choose.
	Backend Backend `json:",omitempty"`
	// IPv4 and IPv6 are the link's networks: its first end has the first address,
	// its second the second. The zero Prefix lets the link's place choose.
	IPv4 netip.Prefix `json:",omitzero"`
	IPv6 netip.Prefix `json:",omitzero"`
	// NoOffload turns TSO, GSO, GRO and transmit checksums off at both ends. They
	// are on otherwise, as veth has them, and super-packets cross the link whole.
	NoOffload bool `json:",omitempty"`
	// LateBound is how late the emulator may release a segment before it counts as
	// late (see Lab.Run); 0 is wire.DefaultLateBound.
	LateBound time.Duration `json:",omitempty"`
	// Seed of all that the emulator or netem draws; 0 is another one each time, which
	// the result tells.
	Seed uint64 `json:",omitempty"`
}

// Path is one direction of a link.
type Path struct {
	link.Spec
	// Exact takes super-packets apart in the emulator, so that each segment has its
	// own time; else those of one super-packet that stay together are handed over
	// together. It costs processor time.
	Exact bool `json:",omitempty"`
}

// Limited is a path that has nothing but a rate; 0 is as fast as the machine.
func Limited(rate unit.Rate) Path { return Path{Spec: link.Spec{Rate: rate}} }

// minQueue of a queue that is given in time holds one super-packet with its
// headers: one that cannot take that drops all of a TCP flow's.
const minQueue = 70_000

// queueBytes is the bound in layer-2 bytes of a queue that the kernel keeps.
func (p Path) queueBytes() uint64 {
	if p.Queue.Bytes > 0 {
		return uint64(p.Queue.Bytes)
	}
	t := p.Queue.Time
	if t == 0 {
		t = link.DefaultQueue
	}
	return max(uint64(float64(p.Rate)/8*t.Seconds()), minQueue)
}

// LinkNames are the names of the links, by their place in Links.
func (t *Topology) LinkNames() []string {
	out := make([]string, len(t.Links))
	used := map[[2]string]int{}
	for i, l := range t.Links {
		used[l.Ends]++
		if out[i] = l.Name; out[i] != "" {
			continue
		}
		out[i] = l.Ends[0] + "-" + l.Ends[1]
		if n := used[l.Ends]; n > 1 {
			out[i] = fmt.Sprintf("%s-%d", out[i], n)
		}
	}
	return out
}

// afterLast is how long a run without a Duration goes on when nothing happens any
// more, so that what the last change did is seen.
const afterLast = 5 * time.Second

// RunTime is how long a run lasts: the topology's Duration, or until 5 s after the
// last event and the last start, stop or change of an offered rate. Transfers end
// by themselves, and are not in it: see UntilDone.
func (t *Topology) RunTime() time.Duration {
	if t.Duration > 0 {
		return t.Duration
	}
	var last time.Duration
	transfers := 0
	for _, f := range t.timedFlows() {
		if f.Transfer != nil {
			transfers++
			continue
		}
		last = max(last, f.Start, f.Stop)
		for _, s := range f.Schedule {
			if at := f.Start + s.At; f.Stop == 0 || at < f.Stop {
				last = max(last, at)
			}
		}
	}
	for _, e := range t.Timeline {
		last = max(last, e.At)
	}
	if transfers > 0 && transfers == len(t.Flows) && len(t.Programs)+len(t.Timeline) == 0 {
		return 0
	}
	return last + afterLast
}

// UntilDone tells whether a run goes on after its RunTime until its transfers are
// over: if there are some, and no Duration.
func (t *Topology) UntilDone() bool {
	return t.Duration == 0 && slices.ContainsFunc(t.Flows, func(f traffic.Flow) bool { return f.Transfer != nil })
}

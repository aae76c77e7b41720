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

// Topology describes a network, and what happens in it during a run.
type Topology struct {
	// Name is part of every namespace's name: letters, digits and dashes.
	Name     string
	Nodes    []NodeSpec
	Switches []SwitchSpec `json:",omitempty"`
	Links    []LinkSpec
	// Flows, Programs, Timeline and Duration are for Run; a lab can be created without them. A flow's
	// ends are names of nodes.
	Flows    []traffic.Flow `json:",omitempty"`
	Programs []Program      `json:",omitempty"`
	Timeline []Event        `json:",omitempty"`
	Duration time.Duration  `json:",omitempty"`
	// Seed of the random numbers of flows, and of links that have no seed of their own; 0 is a new one
	// for each run.
	Seed uint64 `json:",omitempty"`
}

// NodeSpec is a host or a router.
type NodeSpec struct {
	// Name has at most 11 characters, because the device of a link to a node has the node's name.
	Name string
	// Router forwards packets; a host does not.
	Router bool `json:",omitempty"`
	// Sysctl are settings below /proc/sys of the node's namespace, such as "net.ipv4.tcp_ecn": "1".
	Sysctl map[string]string `json:",omitempty"`
}

// LinkSpec connects two nodes or switches.
type LinkSpec struct {
	// Name is for the timeline and the results; "" is that of its ends, "a-b", and "a-b-2" for a
	// second link between them.
	Name string `json:",omitempty"`
	Ends [2]string
	// Forward is the direction from Ends[0] to Ends[1], Back the other.
	Forward, Back Path
	// Backend is the implementation of the link; "" lets Topology.Backends choose.
	Backend Backend `json:",omitempty"`
	// IPv4 and IPv6 are the link's networks: its first end has the first address, its second the
	// second. At a switch they are the address of the link's node, with the length of the network of
	// all nodes at connected switches. The zero Prefix is the default (see address.go).
	IPv4 netip.Prefix `json:",omitzero"`
	IPv6 netip.Prefix `json:",omitzero"`
	// NoOffload turns TSO, GSO, GRO and transmit checksums off at both ends. They are on by default,
	// as on any veth, and super-packets cross the link whole; at a switch they are always off.
	NoOffload bool `json:",omitempty"`
	// LateBound is how late the emulator may release a segment before it counts as late (see Lab.Run);
	// 0 is wire.DefaultLateBound.
	LateBound time.Duration `json:",omitempty"`
	// Seed of the random numbers of the emulator or netem; 0 is a new one for each run, which is in
	// the result.
	Seed uint64 `json:",omitempty"`
}

// Path is one direction of a link.
type Path struct {
	link.Spec
	// Exact segments super-packets in the emulator, so that each segment has its own release time;
	// otherwise the segments of a super-packet that stay together are released together. It costs
	// processor time.
	Exact bool `json:",omitempty"`
}

// Limited returns a path with only a rate; 0 is unlimited.
func Limited(rate unit.Rate) Path { return Path{Spec: link.Spec{Rate: rate}} }

// minQueue of a queue limit in time holds one super-packet with its headers: a smaller queue would
// drop all packets of a TCP flow.
const minQueue = 70_000

// queueBytes returns the limit in layer-2 bytes of a queue in the kernel.
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

// LinkNames returns the names of the links, in the order of Links.
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

// afterLast is how long a run without a Duration continues after the last change, so that the effect
// of the change is measured.
const afterLast = 5 * time.Second

// RunTime returns the duration of a run: the topology's Duration, or until 5 s after the last event
// and the last start, stop or change of an offered rate. It does not include transfers: see UntilDone.
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

// UntilDone reports whether a run continues after its RunTime until its transfers have ended: if there
// are transfers, and no Duration.
func (t *Topology) UntilDone() bool {
	return t.Duration == 0 && slices.ContainsFunc(t.Flows, func(f traffic.Flow) bool { return f.Transfer != nil })
}

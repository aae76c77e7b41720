package lab

import (
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// RigOptions describe the ready-made network of the benches:
//
//	client ── router ── server
//
// Headgate shapes the server's device "router": out is what the server sends.
type RigOptions struct {
	// Name of the lab; UniqueName makes one.
	Name string
	// Bottleneck, if not 0, limits what leaves the router towards the side that
	// lies beyond Headgate's own limit: the client for out, and the server, before
	// the packets reach it, for in. 101 % of Headgate's limit is a real link that
	// Headgate must stay below.
	Bottleneck unit.Rate
	// In puts the bottleneck upstream of the server.
	In bool
	// Queue bounds the bottleneck's queue; the zero Amount is link.DefaultQueue.
	Queue link.Amount
	// RTT is added between client and router, half each way, by the emulator. 0 is
	// plain veth.
	RTT time.Duration
	// Sysctl are set in client and server.
	Sysctl map[string]string
	// NoOffload turns segmentation offload off on both links.
	NoOffload bool
}

// Rig is the topology for o.
func Rig(o RigOptions) *Topology {
	access := LinkSpec{Ends: [2]string{"client", "router"}, NoOffload: o.NoOffload}
	access.Forward.Delay, access.Back.Delay = o.RTT/2, o.RTT-o.RTT/2
	if o.RTT > 0 {
		access.Backend = Emulator // whatever the kernel has: results stay comparable
	}
	inner := LinkSpec{Ends: [2]string{"router", "server"}, NoOffload: o.NoOffload}
	if o.Bottleneck > 0 {
		limited := &access.Back
		if o.In {
			limited = &inner.Forward
		}
		limited.Rate, limited.Queue = o.Bottleneck, o.Queue
	}
	return &Topology{
		Name: o.Name,
		Nodes: []NodeSpec{
			{Name: "client", Sysctl: o.Sysctl},
			{Name: "router", Router: true},
			{Name: "server", Sysctl: o.Sysctl},
		},
		Links: []LinkSpec{access, inner},
	}
}

package lab

import (
	"time"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// RigOptions describe the network of the benchmarks:
//
//	client ── router ── server
//
// Headgate shapes the server's device "router": out is the direction of the server's packets.
type RigOptions struct {
	// Name of the lab; "" is a UniqueName.
	Name string
	// Bottleneck, if not 0, is a rate limit of the router on the far side of Headgate's own limit:
	// towards the client for out, and towards the server for in, before the packets reach it. 101 % of
	// Headgate's limit is a real link below whose rate Headgate must shape.
	Bottleneck unit.Rate
	// In places the bottleneck upstream of the server.
	In bool
	// Queue is the bottleneck's queue limit; the zero Amount is link.DefaultQueue.
	Queue link.Amount
	// RTT is added between client and router, half in each direction, by the emulator. 0 is a plain
	// veth.
	RTT time.Duration
	// Sysctl are set on client and server.
	Sysctl map[string]string
	// NoOffload turns segmentation offload off on both links.
	NoOffload bool
}

// Rig returns the topology for o.
func Rig(o RigOptions) *Topology {
	access := LinkSpec{Ends: [2]string{"client", "router"}, NoOffload: o.NoOffload}
	access.Forward.Delay, access.Back.Delay = o.RTT/2, o.RTT-o.RTT/2
	if o.RTT > 0 {
		access.Backend = Emulator // whatever the kernel supports: results stay comparable
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

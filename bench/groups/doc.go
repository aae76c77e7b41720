// Package groups is the bench of bandwidth groups on an interface: the test of the bwaas thesis
// (chapter V, docs/seeds.md) and its covetous effect (chapter VII) on real kernels with real TCP and
// UDP, and the properties that users need: how fast idle bandwidth is lent and returned, the latency,
// the spare policy, and the processor time.
//
// targets.go has the table of targets. Each other file has one row, or a few that are measured
// together:
//
//	ramp.go     ramp-in, ramp-out, covetous, steady: the paper's test
//	ecn.go      ecn: the paper's overload with and without ECN
//	wake.go     return, lend
//	latency.go  latency
//	spare.go    spare
//	cost.go     cost: eBPF time per packet; throughput without a limit
//	scale.go    scale
//	wire.go     wire: full links from 50 Mbit/s to 2 Gbit/s
//	drawn.go    drawn: the paper's test in twenty random cases
//	churn.go    churn: 200 veths at once, through the agent
//	nested.go   nested: three levels, with all patterns of busy leaves
//	inside.go   inside: senders within their guarantees
//	control.go  control: floods disguised as control traffic (dressed.go)
//	ways.go     ways: other packet processing on the path of a packet
//
// Everything runs in the lab's network: client, router, server, with Headgate on the server's device
// towards the router. "out" is what the server sends, "in" what it receives. Rates are layer-2 bits
// per second of arrivals at the receiving socket, which is behind everything that a limiter does.
//
// Differences from the paper: TCP and UDP instead of SCTP, because those are common; layer-2 bytes
// instead of payload, because the rate of a link is in those; and arrivals counted in the kernel
// instead of by a program.
package groups

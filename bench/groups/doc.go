// Package groups is the bench of bandwidth groups on an interface: the bwaas
// seed's test (chapter V) and its covetous effect (chapter VII) on real kernels
// and real TCP and UDP, and what a user asks besides: how fast idle bandwidth is
// lent and given back, what waiting costs, whether spare goes by the policy, and
// what it takes in processor time.
//
// targets.go is the table, copied once. Each other file is one row or a
// few that are measured together:
//
//	ramp.go     ramp-in, ramp-out, covetous, steady: the seed's test
//	ecn.go      ecn: the seed's overload with ECN and without
//	wake.go     return, lend
//	latency.go  latency
//	spare.go    spare
//	cost.go     cost: eBPF time per packet; throughput without a limit
//	scale.go    scale
//	wire.go     wire: full links from 50 Mbit/s to 2 Gbit/s
//	drawn.go    drawn: the seed's test in twenty draws
//	churn.go    churn: 200 veths at once, through the agent
//	nested.go   nested: three levels, in all patterns of who is busy
//	inside.go   inside: senders within their guarantees
//	control.go  control: floods dressed up as control traffic (dressed.go)
//	ways.go     ways: what else is on the way of a packet
//
// Everything runs in the lab's rig: client, router, server, with Headgate on the
// server's device towards the router. "out" is what the server sends, "in" what
// it receives. Rates are layer-2 bits per second and are taken from arrivals at
// the receiving socket, where everything that a limiter does is behind.
//
// Where this departs from the seed: TCP and UDP instead of SCTP, because that is
// what links carry; layer-2 bytes instead of payload, because that is what a
// link's rate means; and arrivals counted in the kernel instead of by a program.
package groups

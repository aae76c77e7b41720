// Package service is the bench "service": a controller, or three, with agents, as processes and
// streams in a network of namespaces. Controllers and the agents that enforce are this program's
// own commands; where thousands of agents are needed they are the agent's real link to the
// controllers (package agent/remote), which enforces nothing.
//
// Each file is one idea:
//
//	service.go   the rows, and what is set up
//	place.go     a network with controllers and a host to ask from
//	asking.go    requests, and how long they took
//	fleet.go     thousands of agents' streams
//	change.go    from a request to the kernel
//	scale.go     2,000 streams
//	watch.go     those who are told of changes
//	oversold.go  a thousand who want the same
//	history.go   what was asked, and what became of it
//	ledger.go    what is right, for the checker of histories
//	security.go  who may what, without TLS, and from where
//	walk.go      requests of the walk, and what is right to answer
//	schemathesis.go  what schemathesis draws, and reaches
//	metric.go    what controllers say of themselves
//	faults.go    what becomes of the leader
//	cutoff.go    an agent without any controller
//	hold.go      whether groups are in force, seen from outside and in the kernel
//	reign.go     who leads when
//	clock.go     a process with a time of day of its own
//	disk.go      disks: full ones, and those that write promptly
//	upgrade.go   an agent that is replaced under load
//	proof.go     what is told of delivery, and what was captured
//	unmet.go     which seconds are told
//	capture.go   tcpdump
//	usage.go     processor time and memory
package service

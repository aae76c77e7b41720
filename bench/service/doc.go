// Package service is the bench "service": one or three controllers with agents, as processes and
// streams in a network of namespaces. Controllers and the enforcing agents are this program's own
// commands. Thousands of agents are the agent's real link to the controllers (package agent/remote),
// which enforces nothing.
//
// Each file has one part:
//
//	service.go   the rows, and the setup
//	place.go     a network with controllers and a host for clients
//	asking.go    requests, and their durations
//	fleet.go     thousands of agents' streams
//	change.go    from a request to the kernel
//	scale.go     2,000 streams
//	watch.go     watchers of changes
//	oversold.go  a thousand requests for the same bandwidth
//	history.go   requests and their outcomes
//	ledger.go    the specification for the checker of histories
//	security.go  permissions, access without TLS, and network exposure
//	walk.go      requests of the walk, and the expected responses
//	schemathesis.go  requests that schemathesis generates, and their coverage
//	metric.go    metrics of controllers
//	faults.go    faults of the leader
//	cutoff.go    an agent without any controller
//	hold.go      whether groups are in force, from outside and in the kernel
//	reign.go     which controller is the leader at which time
//	clock.go     a process with its own time of day
//	disk.go      full disks, and disks with fast writes
//	upgrade.go   an agent that is replaced under load
//	proof.go     the usage record compared with a capture
//	unmet.go     which seconds are recorded as unmet
//	capture.go   tcpdump
//	usage.go     processor time and memory
//	noisy.go     a tenant at each of its bounds
//	strangers.go connections without a token
//	hostile.go   an agent in wrong hands
//	restore.go   what a backup revives, and agents that are ahead
//	jumps.go     clocks that are wrong, and set right
package service

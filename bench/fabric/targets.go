package fabric

import "headgate.dev/headgate/bench"

// Targets of the fabric.
var (
	shownMs    = bench.Target{Op: bench.Measured, Unit: "ms"}
	none       = bench.Target{Op: "<=", Value: 0, Unit: "differences"}
	failures   = bench.Target{Op: "<=", Value: 0, Unit: "failures"}
	decoded    = bench.Target{Op: ">=", Value: 1_000_000, Unit: "messages/s"}
	found1     = bench.Target{Op: "<=", Value: 1, Unit: "s"}
	found3     = bench.Target{Op: "<=", Value: 3, Unit: "s"}
	wrong      = bench.Target{Op: "<=", Value: 0, Unit: "wrong answers"}
	first5     = bench.Target{Op: "<=", Value: 5, Unit: "ms"}
	lost       = bench.Target{Op: "<=", Value: 0, Unit: "lost"}
	copies     = bench.Target{Op: "<=", Value: 0, Unit: "extra copies"}
	storms     = bench.Target{Op: "<=", Value: 0, Unit: "storms"}
	spareGap   = bench.Target{Op: "<=", Value: 50, Unit: "ms"}
	silentGap  = bench.Target{Op: "<=", Value: 1000, Unit: "ms"}
	fallen     = bench.Target{Op: "<=", Value: 0, Unit: "flows"}
	newMaster  = bench.Target{Op: "<=", Value: 6, Unit: "s"}
	twoMasters = bench.Target{Op: "<=", Value: 0, Unit: "observations"}
	idleCores  = bench.Target{Op: "<=", Value: 0.3, Unit: "cores"}
	resident   = bench.Target{Op: "<=", Value: 400, Unit: "MiB"}
	resync     = bench.Target{Op: "<=", Value: 5, Unit: "s"}
	needless   = bench.Target{Op: "<=", Value: 0, Unit: "rules"}
	linkDone   = bench.Target{Op: "<=", Value: 1, Unit: "s"}
	accepted   = bench.Target{Op: "<=", Value: 0, Unit: "accepted"}
	unnamed    = bench.Target{Op: "<=", Value: 0, Unit: "not named"}
	first20    = bench.Target{Op: "<=", Value: 20, Unit: "ms"}
	busyCores  = bench.Target{Op: "<=", Value: 0.5, Unit: "cores"}
)

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "codec", What: ">= 2,000 generated messages of every kind: 0 differences to ofp-print and os-ken; fuzzers clean for 10 min each; >= 1 million small messages/s decoded on one core"},
	{ID: "discovery", What: "the two seeds' networks on real OVS; 200 fake switches with 800 links: complete and right <= 1 s after the last switch connects; <= 3 s"},
	{ID: "connect", What: "10 hosts on a looped network, IPv4 and IPv6, all pairs: first ping <= 5 ms over the second; each broadcast arrives once a port; 0 storms over 10 min with cables added and taken"},
	{ID: "failover", What: "50 Mbit/s UDP and one TCP across; port down; silent loss; switch killed: loss <= 50 ms with a spare port; <= 1 s silent; <= 1 s; RSTP and os-ken beside it"},
	{ID: "leader", What: "kill -9, SIGSTOP, partition of the leading controller, switch reconnects: 0 packets of standing traffic lost, flow counters go on, new master <= 6 s, never two"},
	{ID: "scale", What: "1,000 fake switches, 10,000 hosts, 3,000 links: idle <= 0.3 core, <= 400 MiB; full re-sync <= 5 s; a link's death changes only the rules it must, all switches done <= 1 s"},
	{ID: "hostile", What: "malformed peers; forged LLDP; MAC and ARP spoofing; 20,000 packet-ins/s from one port: refused and named; nothing else slows: other ports' first ping <= 20 ms; controller <= 0.5 core"},
	{ID: "interop", What: "OVS 3.1 userspace here; the kernel datapath in the VM (make test-vm): the same suite passes"},
}

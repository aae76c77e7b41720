package groups

import "headgate.dev/headgate/bench"

// The targets. Nothing else in this package has limits of acceptable values.
var (
	// ramp-in, ramp-out: over the overload; in each second, or each 10 s at 0.8 Mbit/s; total of all
	// groups, relative to TCP's maximum.
	rampGroup  = bench.Target{Op: ">=", Value: 99, Unit: "%"}
	rampSecond = bench.Target{Op: ">=", Value: 97, Unit: "%"}
	rampTotal  = bench.Target{Op: ">=", Value: 98, Unit: "%"}

	// covetous: retransmissions or drops of groups within their guarantee.
	covetous = bench.Target{Op: "<=", Value: 0, Unit: "packets"}

	// steady: coefficient of variation.
	steady = bench.Target{Op: "<=", Value: 0.05, Unit: "sd/mean"}
	// In samples of 1 s at 0.8 Mbit/s, for which there was no requirement, a frame is 0.15 of the
	// smallest group's second: one more or less in each.
	steadySeconds = bench.Target{Op: "<=", Value: 0.15, Unit: "sd/mean"}

	// ecn: relative to the values without ECN. The requirement has the paper's finding and no value:
	// ECN costs no more goodput than the other targets allow, and saves retransmissions.
	ecnGoodput = bench.Target{Op: ">=", Value: 98, Unit: "%"}
	ecnResent  = bench.Target{Op: "<=", Value: 100, Unit: "%"}

	// return: time until a waking group has 95 % of its guarantee. lend: time until idle bandwidth is
	// used.
	returnUDP = bench.Target{Op: "<=", Value: 10, Unit: "ms"}
	returnTCP = bench.Target{Op: "<=", Value: 100, Unit: "ms"}
	lendUDP   = bench.Target{Op: "<=", Value: 20, Unit: "ms"}
	lendTCP   = bench.Target{Op: "<=", Value: 200, Unit: "ms"}

	// latency: a quiet group's p99 minus that without load; inside a full group.
	latencyQuiet   = bench.Target{Op: "<=", Value: 0.5, Unit: "ms"}
	latencyECN     = bench.Target{Op: "<=", Value: 1, Unit: "ms"}
	latencyNoECN   = bench.Target{Op: "<=", Value: 20, Unit: "ms"}
	latencyGoodput = bench.Target{Op: ">=", Value: 94, Unit: "% of the limit"}
	// Over long paths, for which there was no requirement, the target for the time added to the path's
	// own is that without ECN.
	latencyWait = latencyNoECN

	// spare: the deviation of the worst active group from the rate that package share computes.
	spareError = bench.Target{Op: "<=", Value: 5, Unit: "%"}

	// cost: eBPF per packet; throughput without a limit, relative to that without Headgate.
	costHot   = bench.Target{Op: "<=", Value: 250, Unit: "ns"}
	costFlows = bench.Target{Op: "<=", Value: 600, Unit: "ns"}
	costOut   = bench.Target{Op: ">=", Value: 90, Unit: "%"}
	costIn    = bench.Target{Op: ">=", Value: 75, Unit: "%"}

	// scale: 4,000 groups, both directions.
	scaleApply  = bench.Target{Op: "<=", Value: 1.5, Unit: "s"}
	scaleRerate = bench.Target{Op: "<=", Value: 0.150, Unit: "s"}
	scaleNoop   = bench.Target{Op: "<=", Value: 0, Unit: "writes"}
	scaleClear  = bench.Target{Op: "<=", Value: 0.5, Unit: "s"}
	scaleLost   = bench.Target{Op: "<=", Value: 0, Unit: "packets"}
	// Relative to tc -batch in the same run.
	scaleApplyOf  = bench.Target{Op: "<=", Value: 1.1, Unit: "times"}
	scaleRerateOf = bench.Target{Op: "<=", Value: 1.2, Unit: "times"}

	// wire: relative to HTB by hand in the same run; the quiet group; the group within its guarantee.
	wireTotal  = bench.Target{Op: ">=", Value: 99, Unit: "%"}
	wireCPU    = bench.Target{Op: "<=", Value: 2, Unit: "times"}
	wirePing   = bench.Target{Op: "<=", Value: 0.5, Unit: "ms"}
	wireInside = bench.Target{Op: "<=", Value: 0, Unit: "segments"}

	// churn: 200 veths at once.
	churnLast  = bench.Target{Op: "<=", Value: 2, Unit: "s"}
	churnFirst = bench.Target{Op: "<=", Value: 0.2, Unit: "s"}
	churnLeft  = bench.Target{Op: "<=", Value: 0, Unit: "things"}

	// nested: the deviation of the worst leaf from the rate that package share computes.
	nestedError = bench.Target{Op: "<=", Value: 5, Unit: "%"}

	// inside: groups within their guarantee.
	insideDrops = bench.Target{Op: "<=", Value: 0, Unit: "packets"}
	insideUnmet = bench.Target{Op: "<=", Value: 0, Unit: "s"}
	insideRisk  = bench.Target{Op: "<=", Value: 0, Unit: "times"}

	// clients: 10,000 of them, 1,000 active.
	clientsShare  = bench.Target{Op: "<=", Value: 2, Unit: "%"}
	clientsCost   = bench.Target{Op: "<=", Value: 300, Unit: "ns"}
	clientsMemory = bench.Target{Op: "<=", Value: 200, Unit: "MiB"}

	// control: the rate of a capped group relative to its ceiling; the rates of others relative to
	// those without the flood.
	controlPasses = bench.Target{Op: "<=", Value: 102, Unit: "%"}
	controlOthers = bench.Target{Op: ">=", Value: 98, Unit: "%"}

	// ways: packets that a program on the path misses, or that are processed or counted twice.
	waysWrong = bench.Target{Op: "<=", Value: 0, Unit: "packets"}
)

// reachedPart is the part at which a guarantee counts as reached, or idle bandwidth as used.
const reachedPart = 0.95

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "ramp-in", What: "The seed's test on what the server receives: four connections in groups of 10, 20, 30 and 40 %, all offering 10 % of the limit at first, then one after the other rising to 30 % in steps of 5 %; at 120 % for the last phase. Every group at least 99 % of min(offered, guarantee) over the overload and 97 % in each second (at 0.8 Mbit/s: in each 10 s); total at least 98 % of the ceiling."},
	{ID: "ramp-out", What: "The same on what the server sends."},
	{ID: "covetous", What: "TCP retransmissions (UDP: drops) of groups inside their guarantee, after the overload's first tenth: none."},
	{ID: "steady", What: "Coefficient of variation of each connection's rate in the overload (1 s; 10 s at 0.8 Mbit/s): at most 0.05. The worst connection is shown."},
	{ID: "ecn", What: "The seed's overload with ECN and without: goodput at least 98 % of that without, retransmissions no more. The paper found no significant impact."},
	{ID: "return", What: "At 1 ms round-trip time, arrivals timed in 1 ms bins: until a waking group has 95 % of its guarantee. UDP at most 10 ms, TCP at most 100 ms."},
	{ID: "lend", What: "The same, until bandwidth that a group leaves idle is used by the others. UDP at most 20 ms, TCP at most 200 ms."},
	{ID: "latency", What: "At 100 Mbit/s with the real bottleneck behind, at 101 %: a quiet group's round-trip time at p99 over its unloaded p99, at most 0.5 ms; inside a full group, CUBIC with ECN, mean at most 1 ms at 94 % goodput or more; without ECN mean at most 20 ms at 94 %. Of longer paths the issue says only that goodput at 100 ms is not given away: the cases \"not-in-the-issue\" hold 10 and 100 ms to the same 94 %, and the wait to 20 ms."},
	{ID: "spare", What: "The three ways to lend against `share`'s answer, with segmentation offload on: each active group within 5 %."},
	{ID: "cost", What: "eBPF time per packet by the kernel's own statistics: one hot flow at most 250 ns, 100,000 flows in random order at most 600 ns. Throughput of a limit that is never reached against no Headgate, in interleaved pairs: median out at least 90 %, in 75 %."},
	{ID: "scale", What: "4,000 groups in both directions under traffic: apply at most 1.5 s, all rates changed within 150 ms, the same again writes nothing, clear at most 0.5 s, and no packet of another group lost. Beside tc -batch by hand: apply at most 1.1 times its time, all rates at most 1.2 times."},
	{ID: "wire", What: "Limits of 50, 200, 400, 600, 900, 1,000 and 2,000 Mbit/s, out, in and from a guest; 4 CUBIC flows and a quiet group: total at least 99 % of HTB by hand in the same run, processor time at most 2 times its, quiet ping p99 at most 0.5 ms, 0 retransmissions inside a guarantee."},
	{ID: "drawn", What: "The seed's test in 20 draws at full length: every group at least 99 % of min(offered, guarantee) over the overload and 97 % in each second, total at least 98 % of the ceiling, in each."},
	{ID: "churn", What: "200 veths at once, both directions: the last divided within 2 s, the first ten within 0.2 s, nothing left after."},
	{ID: "nested", What: "Three levels, one busy leaf a tenant, all patterns of who is busy; TCP and UDP; three ways to lend: every leaf within 5 % of `share`'s answer."},
	{ID: "inside", What: "Paced senders at 50 to 95 % of their guarantee in writes of 1 to 256 kB, round-trip times of 0.1 to 100 ms: 0 drops, 0 unmet seconds, 0 at risk."},
	{ID: "clients", What: "`each:` with 10,000 clients, 1,000 of them active, on 400 Mbit/s: each within 2 % of its share; eBPF at most 300 ns a packet; at most 200 MiB."},
	{ID: "control", What: "Every kind of packet dressed as control, a flood from a capped group: the group passes at most 102 % of its ceiling; others' download and first ping unchanged within 2 %."},
	{ID: "ways", What: "nft ingress, flowtable, XDP generic, tc others before and after, IPsec, VLAN, macvlan, bridge, PPPoE, WireGuard (in the virtual machine where the kernel lacks it): nothing skipped, nothing counted twice, or refused by name."},
}

package lab

import "headgate.dev/headgate/bench"

// Targets of the lab.
var (
	rateOff      = bench.Target{Op: "<=", Value: 1, Unit: "%"}
	fastRateOff  = bench.Target{Op: "<=", Value: 5, Unit: "%"}
	delayP50     = bench.Target{Op: "<=", Value: 0.2, Unit: "ms"}
	delayP99     = bench.Target{Op: "<=", Value: 1, Unit: "ms"}
	loadedP99    = bench.Target{Op: "<=", Value: 2, Unit: "ms"}
	lossSigmas   = bench.Target{Op: "<=", Value: 3, Unit: "sigma"}
	crossOff     = bench.Target{Op: "<=", Value: 2, Unit: "%"}
	outOfPlace   = bench.Target{Op: "<=", Value: 0, Unit: "packets"}
	costCore     = bench.Target{Op: "<=", Value: 25, Unit: "% of a core"}
	formulaOff   = bench.Target{Op: "<=", Value: 20, Unit: "%"}
	notAsDefined = bench.Target{Op: "<=", Value: 0, Unit: "packets"}
	upSeconds    = bench.Target{Op: "<=", Value: 2, Unit: "s"}
	downSeconds  = bench.Target{Op: "<=", Value: 2, Unit: "s"}
	nothingLeft  = bench.Target{Op: "<=", Value: 0, Unit: "things"}
)

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "rate", What: "0.5 Mbit/s to 1 Gbit/s: TCP goodput within 1 % of what framing allows; 5 and 10 Gbit/s at RTT <= 10 ms within 5 %. Here: how far one Reno connection is off 1448/1514 (IPv6: 1428/1514) of the link's rate, at its receiver."},
	{ID: "delay", What: "Idle ping p50 within 0.2 ms of nominal, p99 within 1 ms, 1 to 600 ms RTT; under 200 Mbit/s of load p99 within 2 ms. Both ways are timed from the send to the kernel's receive timestamp; nothing is subtracted."},
	{ID: "loss", What: "0.01 / 0.1 / 1 % counted at the receiver within 3 sigma, over 10^7 / 10^6 / 10^6 segments."},
	{ID: "cross", What: "Available bandwidth from the release log against the nominal load over 60 s: within 2 %; a probe sees it (interleaving checked packet by packet)."},
	{ID: "cost", What: "1 Gbit/s at 50 ms RTT: the emulator uses at most 25 % of one core."},
	{ID: "tcp", What: "Reno at 50 ms with 0.1 and 1 % loss against the PFTK formula, median of at least 5 runs of 120 s within 20 %; netem in the VM agrees at a rate that it can carry."},
	{ID: "queues", What: "RED and droptail against their definitions; each limiter against its own, packet by packet."},
	{ID: "setup", What: "20 hosts and 30 links up in at most 2 s, down in at most 2 s, nothing left."},
	{ID: "survey", What: "Every cell of the switch survey measured and printed beside the seed's (bwaas, chapter VI, table A.6)."},
}

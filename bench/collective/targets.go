package collective

import "headgate.dev/headgate/bench"

// Targets of collective control.
var (
	ratioOff        = bench.Target{Op: "<=", Value: 5, Unit: "%"}
	resentPart      = bench.Target{Op: "<=", Value: 1, Unit: "of what is allowed"}
	resentNone      = bench.Target{Op: "<=", Value: 0, Unit: "segments"}
	variation       = bench.Target{Op: "<=", Value: 0.5, Unit: "of plain TCP's"}
	recovered       = bench.Target{Op: ">=", Value: 95, Unit: "%"}
	released        = bench.Target{Op: "<=", Value: 20, Unit: "s"}
	proportionOff   = bench.Target{Op: "<=", Value: 7, Unit: "%"}
	notStarved      = bench.Target{Op: ">=", Value: 50, Unit: "% of plain TCP's"}
	asWithout       = bench.Target{Op: "<=", Value: 2, Unit: "%"}
	least5s         = bench.Target{Op: ">=", Value: 90, Unit: "% of plain TCP's"}
	resentPlain     = bench.Target{Op: "<=", Value: 100, Unit: "% of plain TCP's"}
	carriedLight    = bench.Target{Op: ">=", Value: 95, Unit: "% of plain TCP's"}
	carriedHeavy    = bench.Target{Op: ">=", Value: 90, Unit: "% of plain TCP's"}
	aggregate       = bench.Target{Op: ">=", Value: 95, Unit: "% of plain TCP's"}
	rateKept        = bench.Target{Op: "<=", Value: 5, Unit: "%"}
	ofDue           = bench.Target{Op: "<=", Value: 10, Unit: "%"}
	costFlows       = bench.Target{Op: "<=", Value: 3, Unit: "% of a core"}
	costIdle        = bench.Target{Op: "<=", Value: 2, Unit: "% of a core"}
	measuredCost    = bench.Target{Op: bench.Measured, Unit: "% of a core"}
	measuredPercent = bench.Target{Op: bench.Measured, Unit: "%"}
	measuredOnly    = bench.Target{Op: bench.Measured, Unit: "Mbit/s"}
)

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "floor", What: "1, 2, 4, 20 rivals (CUBIC, Reno, BBR) x queue 0.25, 0.5, 1, 2, 4 BDP, droptail, RED, CoDel x RTT 1, 20, 100 ms x 10, 50, 250 Mbit/s; rivals on for good, and 10 s on, 10 s off: set >= 90 % of plain TCP's in each 5 s, from the first; >= 95 % over the case"},
	{ID: "parts", What: "the same: every member within 7 % of its proportion in each 5 s after the first"},
	{ID: "resent", What: "the same: <= plain TCP's"},
	{ID: "carried", What: "the paper's 72 cases: >= plain TCP's x 0.95 at 2 and 4 Mbit/s, >= 0.9 at 8"},
	{ID: "restart", What: "kill -9 and upgrade under congestion; members reconnect; pools of 50 short connections: proportions back <= 5 s, within 7 %; rate within 5 % of before"},
	{ID: "two", What: "two and three sets on one bottleneck, weights between sets: each within 10 % of its due"},
	{ID: "found", What: "50 drawn topologies with known shared bottlenecks: precision >= 0.95, recall >= 0.9"},
	{ID: "ratio", What: "DB1:DB2 within 5 % of the ratio really offered, every case (report where plain TCP holds it too, and take no credit)"},
	{ID: "losses", What: "DB retransmissions <= 20 % of plain TCP's or <= 0.1 % of segments (half queue and equal priority: <= 50 %); none at 4 Mbit/s, full queue, AF31"},
	{ID: "smooth", What: "at 8 Mbit/s: variation of DB1's rate beyond that of its offered load <= half of plain TCP's"},
	{ID: "paper", What: "what the paper draws beside rates: router losses (figures 4, 10, 17), round trips (8, 14, 20), FTP's own smoothness, and the link's utilisation (near 100 %)"},
	{ID: "recover", What: ">= 95 % of the old rate within 5 s after the congestion ends; caps gone within 20 s"},
	{ID: "fast", What: "100 Mbit/s and 1 Gbit/s, 1/10/50 ms, five members: paced in calm at 8:4:2:1:1, then greedy under congestion; and the same with weights by hand; cubic, bbr; droptail, RED, ECN: each within 7 % of its proportion"},
	{ID: "both", What: "FTP and DB controlled as one set, and as two: proportions held, no mutual starvation (taken as half of plain TCP's at the least)"},
	{ID: "calm", What: "no congestion, 1 Gbit/s, paired runs: throughput and latency within 2 % of without us"},
	{ID: "unfair", What: "20 interfering greedy flows: the set's aggregate >= 95 % of what plain TCP gets for it"},
	{ID: "cost", What: "8 flows at 10 Gbit/s; 10,000 connections, 1 % active: <= 3 % and <= 2 % of one core, eBPF and daemon"},
}

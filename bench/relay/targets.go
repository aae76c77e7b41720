package relay

import "headgate.dev/headgate/bench"

// Targets of the relay.
var (
	shown   = bench.Target{Op: bench.Measured, Unit: "% of the rate"}
	most95  = bench.Target{Op: ">=", Value: 95, Unit: "% of the rate"}
	most90  = bench.Target{Op: ">=", Value: 90, Unit: "% of the rate"}
	most97  = bench.Target{Op: ">=", Value: 97, Unit: "% of the best"}
	single  = bench.Target{Op: ">=", Value: 100, Unit: "% of the best single path"}
	fewest  = bench.Target{Op: "<=", Value: 16, Unit: "streams"}
	counted = bench.Target{Op: bench.Measured, Unit: "streams"}
	back    = bench.Target{Op: "<=", Value: 5, Unit: "round-trip times"}
	stall   = bench.Target{Op: "<=", Value: 3, Unit: "round-trip times"}
	part75  = bench.Target{Op: "<=", Value: 0.75, Unit: "of direct CUBIC's"}
	above   = bench.Target{Op: "<=", Value: 2, Unit: "ms"}
	framing = bench.Target{Op: "<=", Value: 0.1, Unit: "%"}
	cpu     = bench.Target{Op: "<=", Value: 1.5, Unit: "of the proxy's"}
	cpuTLS  = bench.Target{Op: "<=", Value: 2.5, Unit: "of the proxy's"}
)

// rows are the rows of the table of targets.
var rows = []bench.Row{
	{ID: "long", What: "1 Gbit/s, 54 and 160 ms RTT: >= 95 % of what framing allows, without tuning"},
	{ID: "two-paths", What: "both together, 500 Mbit/s each if 1 Gbit/s each is beyond the machine: >= 90 % of the sum"},
	{ID: "delay", What: "two 300 Mbit/s paths, 25 ms against 25/50/100/200/400 ms: >= 95 % of the sum at every row, never below the best single path"},
	{ID: "rate", What: "100 Mbit/s and 100..500 Mbit/s: >= 95 % of the sum"},
	{ID: "loss", What: "1 Gbit/s, 1 % loss, 25 ms RTT (and 0.01, 0.1 %): >= 90 % of the lossless rate; <= 16 streams where BBR is allowed; streams needed with CUBIC reported"},
	{ID: "uneven", What: "20 + 300 Mbit/s: >= 95 % of the sum"},
	{ID: "far", What: "600 ms RTT, 100 Mbit/s: >= 90 % after 10 s"},
	{ID: "fade", What: "100 Mbit/s falls to 10 for 20 s and returns, 300 ms RTT: back at 90 % within 5 RTT; no stall over 3 RTT"},
	{ID: "over-use", What: "600 Mbit/s path started with 100 streams: settles by itself at >= 97 % of the best fixed n"},
	{ID: "short", What: "10 KB, 1 MB, 10 MB at 100 ms RTT, warm: median <= 0.75 of direct CUBIC from 1 MB up; never above direct + 2 ms"},
	{ID: "block", What: "sends of 512 to 8,192 bytes, 100 ms: no fall below 97 % of the best; framing <= 0.1 % from 8 KB writes"},
	{ID: "cost", What: "CPU per Gbit/s against a splitting proxy that copies in user space, unencrypted; and encrypted: <= 1.5 times; <= 2.5 times"},
	{ID: "fair", What: "relay in a 30 % group beside 10 ordinary connections in a 70 % group: shares within 2 %"},
	{ID: "apps", What: "curl, rsync over ssh, git clone, iperf3, a WebSocket echo, HTTP/2: through the transparent way in, 100 ms, 1 % loss: all work unmodified, server logs show the client's address; each >= direct"},
	{ID: "whole", What: "10 GB of random data in 200 connections under loss, reordering, path death, a path's router killed, slow readers: every hash right; no leak of memory or descriptors"},
}

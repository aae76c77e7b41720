package groups

import (
	"slices"

	"headgate/bench"
)

// Bench is `headgate bench groups`.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name: "groups", Title: "Bandwidth groups on an interface", About: about, Rows: rows, Seed: d.Seed(),
		Tools: [][]string{{"tc", "-V"}, {"ethtool", "--version"}},
		Cases: slices.Concat(rampBenches(d), wakeBenches(), latencyBenches(), spareBenches(), costBenches(), scaleBenches()),
	}
}

const about = `## How it is measured

**The network** is three namespaces on one machine, client, router and server, joined
by veth pairs with segmentation offload on. Headgate, or whoever is measured beside
it, limits the server's device: "out" is what the server sends, "in" what it
receives. The router is there because without one TCP sees the queue of another host
on the same machine as its own. A real bottleneck (latency, and one setting of
ramp-in) is an HTB class of 101 % of the limit with a queue of 50 ms on the router.

**Rates** are layer-2 bytes on the wire. A TCP segment of 1,448 bytes is a frame of
1,514, so that TCP's ceiling is 1448/1514 of the limit. What is offered is paced by
the sending program; what is received is counted in the kernel as it arrives at the
receiving socket, super-packets as the frames they stand for: for "in" that is behind
the IFB and its queues. Totals are goodput, as full frames: what the receiving
program read, so that a segment that arrives twice counts once.

**ramp-in, ramp-out, covetous, steady** are one run in each setting. Steps last 5 s and
the overload 60 s; "seed-timing" has the seed's own 30 s and 300 s. Retransmissions are
the sender's, losses of datagrams are missing sequence numbers; both count after the
overload's first tenth. Every flow names its congestion control. The paper's figures
are SCTP payload at 0.8 Mbit/s. "drawn" has what the seed of the run gave: a limit from
0.8 Mbit/s to 1 Gbit/s, of which every decade is as likely as another; guarantees in
whole percents, each at least 10 % and 100 % together; a round-trip time of 1 to 50 ms;
and UDP, CUBIC or BBR. The connections offer what they do in the fixed cases.

**return, lend**: group3 (40 %) sleeps and wakes while the others want everything; as
UDP it offers just its guarantee, as TCP all it can. The round-trip time is 1 ms. A
share counts as reached at the first bin of 1 ms from which the mean is 95 % or more
over the next 10 ms, over the next 100 ms, and until the group changes again. For
return that is 95 % of the guarantee, counted from the moment its program begins to
offer; for lend what the others had before and 95 % of what the group had, counted
from the moment its program stops. Of ten wakes the median counts; the notes have the
90th percentile. The quantum engine lends 1.5 % of the limit a second, and is watched
for 40 s.

**latency** is from small UDP packets whose round trips are timed by the kernel's receive
timestamps. Quiet: they are alone in group0 while groups 1 to 3 are full. Inside a full
group: they share group0 with one or four CUBIC connections. Nothing adds to the
round-trip time of the veth pairs, which is below 0.1 ms, but in the cases
"not-in-the-issue": there the path has 10 or 100 ms, and what it has unloaded is taken
off what is shown, and TCP may buffer as much as such a path needs. There "out" says
little of the marker, because the sending host itself keeps its own queue short (TCP
small queues); "in" says more.

**spare**: each active group has one greedy CUBIC connection.

**cost** is what the kernel's own statistics say that the programs took for 60-byte UDP
frames ("full-frames": 1,514 bytes) from a packet socket, the statistics' own cost
included; the departure hook's share is for all devices that a packet passes. "ecn" is
packets that can be marked: the marker looks at one in a kilobyte of them, which is
every full frame, and at one in eight of others. Throughput is one CUBIC
connection's.

**scale**: two steady UDP flows of 20 Mbit/s are in a group that nobody changes, two TCP
connections in another. 100,000 more connections, which send nothing, are assigned to
groups before the rates change (10,000 in a smoke run), and stay until the end. The
limit is 10 Gbit/s, where each of Headgate's queues is one qdisc; at 1 Gbit/s, where
super-packets are cut, it is two. Times are medians of five rounds, losses and writes
the worst of them. What the kernel announces on the traffic-control group of rtnetlink
counts as written.

**Beside it, in the same run**: *quantum*, the seed's algorithm as Headgate's second engine
(it counts payload, so its rates are scaled by 1448/1514); *HTB by hand*, a class per
group, quanta in proportion to guarantees, u32 filters, FIFO leaves (250 KB where
waiting is measured); *one plain limit* and *TBF (CNI)*, one token bucket and one queue, as
a hypervisor and as the CNI bandwidth plugin set it up; *policer*, a token bucket of
128 KiB without a queue; *tc by hand*, tc -batch.

**Disturbance**: processor time that other programs used, or that a hypervisor kept
back, is recorded with each figure; above 10 % of one processor the figure is marked.
With --patience the bench waits for better times and measures again what was
disturbed, whatever the figure was, and takes the least disturbed.`

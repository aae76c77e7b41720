package groups

import (
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench returns the bench of `headgate bench groups`.
func Bench(d *bench.Draw) bench.Bench {
	return bench.Bench{
		Name: "groups", Title: "Bandwidth groups on an interface", About: about, Rows: rows, Seed: d.Seed(),
		Tools: [][]string{{"tc", "-V"}, {"ethtool", "--version"}, {"nft", "--version"}},
		Cases: slices.Concat(
			slowLast(slices.Concat(wayBenches(), insideBenches(d), controlBenches())), ecnBenches(), rampBenches(d),
			wakeBenches(), latencyBenches(), spareBenches(), costBenches(), clientsBenches(), scaleBenches(), wireBenches(), nestedBenches(d), churnBenches(), drawnBenches(d),
		),
	}
}

const about = `## How it is measured

**The network** is three namespaces on one machine, client, router and server, joined
by veth pairs with segmentation offload on. Headgate, or the peer that is measured,
limits the server's device: "out" is what the server sends, "in" what it
receives. The router is there because without one TCP sees the queue of another host
on the same machine as its own. A real bottleneck (latency, and one setting of
ramp-in) is an HTB class of 101 % of the limit with a queue of 50 ms on the router.

**Rates** are layer-2 bytes on the wire. A TCP segment of 1,448 bytes is a frame of
1,514, so that TCP's maximum is 1448/1514 of the limit. The sending program paces the
offered load. Received data is counted in the kernel on arrival at the receiving socket,
and super-packets as the frames that they represent: for "in" that is behind
the IFB and its queues. Totals are goodput, as full frames: what the receiving
program read, so that a segment that arrives twice counts once.

**ramp-in, ramp-out, covetous, steady** are one run in each setting. Steps last 5 s and
the overload 60 s; "seed-timing" has the paper's own 30 s and 300 s. Retransmissions are
the sender's, losses of datagrams are missing sequence numbers; both count after the
overload's first tenth. Every flow names its congestion control. The paper's figures
are SCTP payload at 0.8 Mbit/s, with its timing and the limiter on the sending side, and
are only in the rows of that case: "seed-timing", out. Its few retransmissions of
groups within their guarantee are before the window of the rows covetous; the
rows "since-the-limit-is-reached" have them, and begin when the total offered load reaches the limit.
Its coefficient of variation is of samples of 10 s, and in "1s" of 1 s. "drawn" has random values from the seed of the run: a log-uniform limit from
0.8 Mbit/s to 1 Gbit/s; guarantees in whole percents, each at least 10 %, with a total of
100 %; a round-trip time of 1 to 50 ms; and UDP, CUBIC or BBR. The connections offer the
same load as in the fixed cases.

**ecn** is only the overload, of CUBIC connections with ECN, and then of connections
without it.

**return, lend**: group3 (40 %) sleeps and wakes while the others have unlimited demand;
with UDP it offers its guarantee, with TCP as much as possible. The round-trip time is 1 ms. A
share counts as reached at the first bin of 1 ms from which the mean is 95 % or more
over the next 10 ms, over the next 100 ms, and until the group changes again. For
return that is 95 % of the guarantee, counted from the time its program starts to
send; for lend it is the former rate of the others and 95 % of that of the group, counted
from the time its program stops. The value is the median of ten wakes; the notes have the
90th percentile. The quantum engine lends 1.5 % of the limit a second, and is measured
for 40 s. With the paper's own step of 1,500 bytes a second it needs 56 min to lend 40 % of
100 Mbit/s, and has lent little after 40 s.

**latency** is from small UDP packets whose round trips are timed by the kernel's receive
timestamps. Quiet: they are alone in group0 while groups 1 to 3 are full. Inside a full
group: they share group0 with one or four CUBIC connections. The
round-trip time of the veth pairs is below 0.1 ms, except in the cases
"not-in-the-issue": there the path has 10 or 100 ms, its unloaded round-trip time is
subtracted from the values, and TCP may buffer as much as such a path needs. There "out"
hardly tests the marker, because the sending host itself keeps its own queue short (TCP
small queues); "in" does.

**spare**: each active group has one greedy CUBIC connection.

**cost** is the time of the eBPF programs by the kernel's own statistics for 60-byte UDP
frames ("full-frames": 1,514 bytes) from a packet socket, including the statistics' own
cost; the departure hook's part is for all devices that a packet passes. "ecn" is
packets that can be marked: the marker examines one in a kilobyte of them, which is
every full frame, and one in eight of others. Throughput is that of one CUBIC
connection.

**clients**: a group with ` + "`each:`" + ` by source address and 10,000 clients that have sent; 1,000 of
them continue, each with 1.2 times its share in full frames from a packet socket. The
receiving program counts arrivals by source. Memory is the growth of slabs, per-CPU memory
and mapped pages of the whole machine, from before the apply until the end of the
traffic. Cost is as in the row cost, at a limit of 600 Mbit/s, which 60-byte frames do not
reach here; "cost-all" has all 10,000 clients send in random order.

**scale**: two constant UDP flows of 20 Mbit/s are in a group that is not changed, two TCP
connections in another. 100,000 more connections, which send nothing, are assigned to
groups before the rates change (10,000 in a smoke run), and stay until the end. The
limit is 10 Gbit/s, where each of Headgate's queues is one qdisc; at 1 Gbit/s, where
super-packets are segmented, it is two. Times are medians of five rounds, losses and writes
the worst of them. Notifications of the kernel on the traffic-control group of rtnetlink
count as writes. "of-tc" are times relative to those of tc -batch, which follows in each round
and creates as many classes, FIFO leaves and u32 filters.

**wire**: a group of 10 % that only has pings every 5 ms (small UDP packets, timed
by the kernel), one of 20 % with a CUBIC connection that is paced at 80 % of its guarantee,
and one of 70 % with four greedy CUBIC connections. "out" and "in" are shaped at the
server; "guest" at the router, on the device from which the client's packets arrive, as a
hypervisor does for a guest. The total is the rate at which all five connections arrive.
Processor time is that of this program and of the kernel, by tracepoints (package
bench/busy): tasks from switch to switch, and interrupts in the time of other tasks. It
includes the senders and receivers, which are the same for all peers. Queues of
HTB by hand hold 20 ms, at least 250 KB. Only this kernel is measured; the virtual
machine, which is emulated, has only functional tests.

**ramp, covetous, steady, return, spare at 1 Gbit/s** are the cases "1000Mbit" of those
rows.

**drawn** is the paper's test as in the rows ramp-in and ramp-out, with random values as in
their cases "drawn-1", only for Headgate, each in both directions. Slow ones run in
parallel, those up to 100 Mbit/s in pairs.

**churn**: an agent ("headgate agent", with the device "veth*", seen from the host: perspective
guest, two groups out and one in) runs when "ip -batch" creates 200 veths, whose other ends
are in another namespace. Times are those of the kernel's notification of a device, and of its
last notification of the traffic control of the device and of its IFB. A device that is
changed again therefore counts from its last change. Then each is compared with its
configuration, and all are removed at once. Times are medians of five rounds, other values
the worst. The agent's own messages and its long-term use of the machine are not measured.

**nested**: tenants a, b and c, each with a machine vm of two leaves x and y, and a leaf e. In
each tenant x, e or none is busy. All 26 patterns follow each other on one tree, without a
reconfiguration, in phases of 5 s, of which the last 3 s count. TCP is one greedy CUBIC
connection a leaf, UDP offers the limit in each busy leaf. The limit is 40 Mbit/s; "drawn"
has random limits of 5 to 200 Mbit/s, guarantees, spare policies and protocols.
Traffic is "out". There is no agent.

**inside**: each sender has its own group and writes over TCP at 50, 80 or 95 % of its
guarantee, in pieces of 1, 4, 16, 64, 128 or 256 KiB; all 18 run in parallel, and start
together. A group with the rest, a quarter of the limit, is overloaded with datagrams. Drops
are the engine's, from the first packet on. Unmet is what package usage computes from counters
read once a second (the usage record), at risk what it computes from counters read four
times a second (metrics and the controller). "drawn" has
ten senders with random guarantees (0.5 to 20 Mbit/s), parts, pieces, direction and path.

**control**: the limit is 20 Mbit/s. A guest under a ceiling of 1 Mbit/s, with two groups below
it, sends 20 Mbit/s of one kind from a packet socket: in the correct form of the protocol, from
forged senders, and with appended data, so that a frame has 1,400 bytes. Packets that pass
are counted behind everything at the far end, by the guest's source addresses. A
download of 60 Mbit/s of another group runs against the flood: its acknowledgements have the
flood's direction, and share the limit with it. A first ping is one after the neighbour entry was
removed, ten a second; the value is the ratio of answered pings, and the notes have the times. The policer by hand is
act_police on the guest's frames.

**ways**: 20 pings pass a shaped device of a pair of hosts, as incoming ("in";
"guest", a guest's "out") or outgoing packets ("out"). Each must be processed once by the foreign
program, be classified once and queued once, or be dropped if the program drops it; or Headgate
refuses to shape the device, with an error that names the program. Observe must report a program that
is added later, and the next apply must be correct (or refused). For PPPoE, frames of a session are
sent from a packet socket; its own device, and that of WireGuard, are tested in the virtual machine
(scripts/test-vm). Cases that the kernel does not support are not measured, and the reason
names the test in the virtual machine.

**Peers in the same run**: *quantum*, the paper's algorithm as Headgate's second engine
(it counts payload, so its rates are scaled by 1448/1514), with a step in proportion to the
limit, which at 0.8 Mbit/s is the paper's; *quantum, step 1500B*, with the paper's step at every
rate; *quantum, 250 ms* and *quantum, overdraft*, with the two remedies of
chapter VII (a tenth of a second would be less than a packet of the smallest group at 0.8
Mbit/s); *HTB by hand*, a class per
group, quanta in proportion to guarantees, u32 filters, FIFO leaves (250 KB where
queue delay is measured); *one plain limit* and *TBF (CNI)*, one token bucket and one queue, as
a hypervisor and as the CNI bandwidth plugin set it up; *policer*, a token bucket of
128 KiB without a queue; *tc by hand*, tc -batch; *HTB by hand, cutting*, with leaves that
segment every super-packet (TBF with a burst of 1,600 bytes); *policer by hand*, act_police,
which not every kernel has.

**A smoke run** has few cases of the rows wire, nested, inside, control and ways and none of
drawn and clients; the others are not measured, unless they are selected by name.

**Disturbance**: processor time that other programs used, and steal time of a hypervisor,
are recorded with each value; above 10 % of one processor the value is marked.
With --patience the benchmark waits for an idle machine and repeats disturbed
measurements, whatever the value was, and takes the least disturbed.`

package groups

import (
	"slices"

	"headgate.dev/headgate/bench"
)

// Bench is `headgate bench groups`.
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
are SCTP payload at 0.8 Mbit/s, with its timing and the limiter on what is sent, and
stand in the rows of that case alone: "seed-timing", out. Its few retransmissions of
groups inside their guarantee come before the window that the rows covetous have; the
rows "since-the-limit-is-reached" have them, and begin when all together offer the limit.
Its coefficient of variation is of samples of 10 s, and in "1s" of one. "drawn" has what the seed of the run gave: a limit from
0.8 Mbit/s to 1 Gbit/s, of which every decade is as likely as another; guarantees in
whole percents, each at least 10 % and 100 % together; a round-trip time of 1 to 50 ms;
and UDP, CUBIC or BBR. The connections offer what they do in the fixed cases.

**ecn** is the overload alone, of CUBIC connections that all agree on ECN, and then of
connections of which none does.

**return, lend**: group3 (40 %) sleeps and wakes while the others want everything; as
UDP it offers just its guarantee, as TCP all it can. The round-trip time is 1 ms. A
share counts as reached at the first bin of 1 ms from which the mean is 95 % or more
over the next 10 ms, over the next 100 ms, and until the group changes again. For
return that is 95 % of the guarantee, counted from the moment its program begins to
offer; for lend what the others had before and 95 % of what the group had, counted
from the moment its program stops. Of ten wakes the median counts; the notes have the
90th percentile. The quantum engine lends 1.5 % of the limit a second, and is watched
for 40 s. With the paper's own step of 1,500 bytes a second it needs 56 min to lend 40 % of
100 Mbit/s, and in 40 s hardly begins.

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

**clients**: one group that is one for each source address, of 10,000 clients that have sent; 1,000 of
them go on, each with 1.2 times its share in full frames from a packet socket. What
arrives is counted by the receiving program, by source. Memory is what slabs, per-CPU memory
and mapped pages of the whole machine grow by, from before the apply until the end of the
traffic. Cost is as in the row cost, at a limit of 600 Mbit/s, which 60-byte frames do not
reach here; "cost-all" has all 10,000 clients send in random order.

**scale**: two steady UDP flows of 20 Mbit/s are in a group that nobody changes, two TCP
connections in another. 100,000 more connections, which send nothing, are assigned to
groups before the rates change (10,000 in a smoke run), and stay until the end. The
limit is 10 Gbit/s, where each of Headgate's queues is one qdisc; at 1 Gbit/s, where
super-packets are cut, it is two. Times are medians of five rounds, losses and writes
the worst of them. What the kernel announces on the traffic-control group of rtnetlink
counts as written. "of-tc" are times over those of tc -batch, which follows in each round
and makes as many classes, FIFO leaves and u32 filters, from nothing.

**wire**: a group of 10 % in which nothing is but pings every 5 ms (small UDP packets, timed
by the kernel), one of 20 % with a CUBIC connection that is paced at 80 % of its guarantee,
and one of 70 % with four greedy CUBIC connections. "out" and "in" are divided at the
server; "guest" at the router, on the device that the client's packets come from, as a
hypervisor does with its guest's. The total is what arrives of all five connections.
Processor time is that of this program and of the kernel, by tracepoints (package
bench/busy): tasks from switch to switch, and interrupts in the time of other tasks. It
has the senders and receivers in it, which are the same for all who are compared. Queues of
HTB by hand hold 20 ms, at least 250 KB. This kernel alone is measured: in the virtual
machine, which is emulated, only that it works is tested.

**ramp, covetous, steady, return, spare at 1 Gbit/s** are the cases "1000Mbit" of those
rows.

**drawn** is the seed's test as in the rows ramp-in and ramp-out, with values drawn as in
their cases "drawn-1", for Headgate alone, each in both directions. Slow ones run at the
same time, those up to 100 Mbit/s by twos.

**churn**: an agent ("headgate agent", with the device "veth*", seen from the host: perspective
guest, two groups out and one in) runs when "ip -batch" makes 200 veths, whose other ends
are in another namespace. Times are those at which the kernel announces devices, and the
last that it announces of each one's traffic control and that of its IFB. So a device that is
changed again was not divided before. Then each is compared with what it should have, and
all are removed at once. Medians of five rounds, of the rest the worst. The agent's own
messages, and what it takes from the machine for long, are not measured.

**nested**: tenants a, b and c, each with a machine vm of two leaves x and y, and a leaf e. In
each tenant x, e or none is busy; a phase of 5 s each, of which the last 3 s count, goes
through all 26 patterns on one tree, which nobody tells of them. TCP is one greedy CUBIC
connection a leaf, UDP offers the limit in each busy leaf. The limit is 40 Mbit/s; "drawn"
has limits of 5 to 200 Mbit/s, guarantees, ways to lend and protocols from the seed.
Traffic is "out". Without an agent: what an agent might improve is not in it.

**inside**: each sender has a group of its own and writes over TCP at 50, 80 or 95 % of its
guarantee, in pieces of 1, 4, 16, 64, 128 or 256 KiB; all 18 at once, and all begin
together. A group with the rest, a quarter of the limit, gets more datagrams than fit. Drops
are the engine's, from the first packet on. Unmet is what package usage makes of counters
read once a second (the proof of delivery), at risk what it says when they are read four
times a second (metrics, and the judgement of a controller, which is the same). "drawn" has
ten senders whose guarantees (0.5 to 20 Mbit/s), parts, pieces, direction and path are drawn.

**control**: the limit is 20 Mbit/s. A guest under a ceiling of 1 Mbit/s, with two groups below
it, sends 20 Mbit/s of one kind from a packet socket: in the protocol's right form, from
forged senders, and with something behind it, so that a frame has 1,400 bytes. What passes
is counted behind everything at the far end, by the guest's source addresses. Another's
download of 60 Mbit/s runs against the flood: its acknowledgements go with it, and share the
limit with it. A first ping is one after the neighbour has been forgotten, ten a second; what
counts is whether it is answered, and the notes have the times. The policer by hand is
act_police on the guest's frames.

**ways**: 20 pings go through a device of a pair of hosts that is divided for what comes in ("in";
"guest", a guest's "out") or what leaves ("out"). Each must be seen once by what is tried,
be classified once and queued once, or be dropped where that drops it; or Headgate refuses
to divide with words that name it. What comes later must be told of by Observe, and be
right (or refused) with the next apply. Of PPPoE frames of a session are sent from a packet
socket; its own device, as WireGuard's, is tried in the virtual machine (scripts/test-vm). What the kernel lacks is missing, and the reason
says which test has it in the virtual machine.

**Beside it, in the same run**: *quantum*, the seed's algorithm as Headgate's second engine
(it counts payload, so its rates are scaled by 1448/1514), with a step in proportion to the
limit, which at 0.8 Mbit/s is the paper's; *quantum, step 1500B*, with the paper's at every
rate; *quantum, 250 ms* and *quantum, overdraft*, with one and with the other remedy of
chapter VII (a tenth of a second would be less than a packet of the smallest group at 0.8
Mbit/s); *HTB by hand*, a class per
group, quanta in proportion to guarantees, u32 filters, FIFO leaves (250 KB where
waiting is measured); *one plain limit* and *TBF (CNI)*, one token bucket and one queue, as
a hypervisor and as the CNI bandwidth plugin set it up; *policer*, a token bucket of
128 KiB without a queue; *tc by hand*, tc -batch; *HTB by hand, cutting*, with leaves that
split every super-packet (TBF with a burst of 1,600 bytes); *policer by hand*, act_police,
which not every kernel has.

**A smoke run** has few cases of the rows wire, nested, inside, control and ways and none of
drawn and clients; the others are missing in it, unless they are asked for by name.

**Disturbance**: processor time that other programs used, or that a hypervisor kept
back, is recorded with each figure; above 10 % of one processor the figure is marked.
With --patience the bench waits for better times and measures again what was
disturbed, whatever the figure was, and takes the least disturbed.`

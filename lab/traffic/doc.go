// Package traffic makes and measures traffic between hosts of a lab, all of it in
// this process, over TCP (multipath too) and UDP, IPv4 and IPv6.
//
// A Flow sends by one of these, between its Start and its Stop:
//
//   - Schedule: a rate, or steps of rates; at Unlimited what the socket takes
//   - OnOff: a rate that is on and off for lengths of time that are drawn
//   - Poisson: UDP datagrams with exponential gaps
//   - Requests: questions and answers of drawn sizes, by users who think (a closed
//     loop) or at a rate (an open loop)
//   - Transfer: files, over one or several connections
//
// Whatever is drawn is drawn from a seed (Options.Seed, which a result names) and
// the flow's name: a run repeats what it asks of the network, though not what the
// network makes of it.
//
// Rates are layer-2 bits per second, as everywhere in Headgate: a TCP flow that
// is offered 100 Mbit/s hands its socket 100/1514*1448 Mbit/s of bytes, in whole
// segments, because a full segment of 1,448 bytes is a frame of 1,514 (IPv4 with
// timestamps; the socket's own MSS is used). Sizes are bytes of payload.
//
// An application paces every flow in ticks of 1 ms, or of one segment where that
// is longer; Poisson datagrams have moments of their own. What the socket does not
// take waits, up to a bound (Flow.Backlog); beyond it the application gives the
// data up and does not offer it again, so that a flow that was held back does not
// burst when it is let go. TCP's own backlog of unsent bytes is bounded by
// TCP_NOTSENT_LOWAT, so that a flow whose schedule says stop does stop.
//
// Four goroutines serve all flows: one sends, to those that are due; one receives,
// once a tick; one runs all Requests and Transfers, woken by their sockets; one
// takes the samples. A flow costs two descriptors and what its packets cost: 2,000
// TCP and 2,000 UDP flows of 10 frames a second take 0.45 of a core, both ends and
// the kernel's work included; 3,000 users who ask once a second, 0.4.
//
// A Probe measures round-trip times with small UDP packets between the kernel's
// receive timestamps, so that a busy machine's late wake-ups are not counted. The
// latency of Requests has them in it, as any program's has.
//
// What a socket cannot have for itself is its namespace's: SACK (net.ipv4.tcp_sack),
// TCP's ECN (net.ipv4.tcp_ecn), the paths of multipath TCP (ip-mptcp(8)).
// lab.NodeSpec.Sysctl sets them, and FlowResult says what was agreed on.
//
// What it is not: a benchmark of the host's maximum. iperf3 is the independent
// check (TestAgreesWithIperf3).
package traffic

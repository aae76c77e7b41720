// Package traffic generates and measures traffic between hosts of a lab, in this process, over TCP
// (also multipath) and UDP, IPv4 and IPv6.
//
// A Flow sends one of these, between its Start and its Stop:
//
//   - Schedule: a rate, or steps of rates; at Unlimited as much as the socket takes
//   - OnOff: a rate that is on and off for random durations
//   - Poisson: UDP datagrams with exponential gaps
//   - Requests: requests and responses of random sizes, from users with think time (a closed loop)
//     or at a rate (an open loop)
//   - Transfer: files, over one or several connections
//
// All random numbers follow from a seed (Options.Seed, which is in the result) and the flow's name: a
// run with the same seed offers the same load, although the network may handle it differently.
//
// Rates are layer-2 bits per second, as everywhere in Headgate. A TCP flow with an offered rate of 100
// Mbit/s writes 100/1514*1448 Mbit/s of bytes to its socket, in whole segments, because a full segment
// of 1,448 bytes is a frame of 1,514 (IPv4 with timestamps; the socket's own MSS is used). Sizes are
// bytes of payload.
//
// The application paces every flow in ticks of 1 ms, or of one segment where that is longer; Poisson
// datagrams have their own times. Data that the socket does not accept is kept up to a bound
// (Flow.Backlog). Beyond it the application discards the data, so that a flow that was blocked does
// not send a burst afterwards. TCP's own backlog of unsent bytes is bounded by TCP_NOTSENT_LOWAT, so
// that a flow stops when its schedule does.
//
// Four goroutines serve all flows: one sends, for flows that are due; one receives, once a tick; one
// runs all Requests and Transfers, woken by their sockets; one takes the samples. A flow costs two
// descriptors and the CPU time of its packets: 2,000 TCP and 2,000 UDP flows of 10 frames a second
// take 0.45 of a core, including both ends and the kernel; 3,000 users with one request a second take
// 0.4.
//
// A Probe measures round-trip times with small UDP packets between the kernel's receive timestamps, so
// that late wake-ups of a busy machine are not included. They are included in the latency of Requests,
// as in that of any program.
//
// Some settings belong to the namespace, not to the socket: SACK (net.ipv4.tcp_sack), TCP's ECN
// (net.ipv4.tcp_ecn), the paths of multipath TCP (ip-mptcp(8)). lab.NodeSpec.Sysctl sets them, and
// FlowResult has what was negotiated.
//
// It does not measure the maximum of the host. iperf3 is the independent check (TestAgreesWithIperf3).
package traffic

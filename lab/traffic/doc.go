// Package traffic makes and measures flows between hosts of a lab, all of them in
// this process: TCP and UDP, over IPv4 and IPv6, each on its own schedule of
// offered rates.
//
// Rates are layer-2 bits per second, as everywhere in Headgate: a TCP flow that
// is offered 100 Mbit/s hands its socket 100/1514*1448 Mbit/s of bytes, in whole
// segments, because a full segment of 1,448 bytes is a frame of 1,514 (IPv4 with
// timestamps; the socket's own MSS is used).
//
// An application paces every flow in ticks of 1 ms, or of one segment where that
// is longer. What the socket does not take waits, up to a bound (Flow.Backlog);
// beyond it the application gives the data up and does not offer it again, so
// that a flow that was held back does not burst when it is let go. TCP's own
// backlog of unsent bytes is bounded by TCP_NOTSENT_LOWAT, so that a flow whose
// schedule says stop does stop.
//
// A Probe measures round-trip times with small UDP packets between the kernel's
// receive timestamps, so that a busy machine's late wake-ups are not counted.
//
// What it is not: a benchmark of the host's maximum. iperf3 is the independent
// check (TestAgreesWithIperf3).
package traffic

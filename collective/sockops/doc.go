// Package sockops reads and caps real TCP connections for package collective, by an eBPF
// program of the kind "sockops" for each set at the root of all cgroups, which looks itself
// whether a connection is in its set's cgroup. Applications and their congestion control
// (reno, cubic, bbr, dctcp) are as they were.
//
// The kernel calls it once a round trip of each connection that sends, and when something
// is sent again or the retransmission timer runs out; nothing happens per packet, and
// user space is not woken at all. What connections show stands in an array that the
// daemon has mapped, as do the caps.
//
// A cap is a pace (SO_MAX_PACING_RATE, in bytes a second, which works without the fq
// qdisc) and a window (TCP_BPF_SNDCWND_CLAMP, in packets, which also sets ssthresh to it:
// net/core/filter.c, bpf_sol_tcp_setsockopt), and holds until a time. The connection's
// first callback after it lifts it. Program and maps are pinned, so that this holds after
// kill -9, too.
package sockops

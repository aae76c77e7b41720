// Package sockops reads and caps real TCP connections for package collective. For each
// set it attaches an eBPF program of the type "sockops" to the root of all cgroups, which
// checks itself whether a connection is in the cgroup of its set. Applications and their
// congestion control (reno, cubic, bbr, dctcp) are not changed.
//
// The kernel calls the program once per round trip of each connection that sends, and at
// retransmissions and retransmission timeouts. There is no work per packet, and user
// space is not woken. The state of the connections and their caps are in an array that
// the daemon maps.
//
// A cap is a pace (SO_MAX_PACING_RATE, in bytes per second, which works without the fq
// qdisc) and a window (TCP_BPF_SNDCWND_CLAMP, in packets, which also sets ssthresh to it:
// net/core/filter.c, bpf_sol_tcp_setsockopt), and has an expiry time. The connection's
// first callback after that time lifts the cap. Programs and maps are pinned, so that
// this works after kill -9, too.
package sockops

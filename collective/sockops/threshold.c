//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* A congestion control that sets the slow start threshold (ssthresh) of a connection.
 *
 * TCP_BPF_SNDCWND_CLAMP sets ssthresh to the clamp, and no option sets ssthresh alone. A
 * connection whose clamp is lifted would therefore be in slow start until it has lost a window
 * of packets. Only a congestion control may write ssthresh. This one does nothing else. A
 * connection has it only for the moment in which its clamp is lifted. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct sock {
	int unused;
} __attribute__((preserve_access_index));

struct tcp_sock {
	__u32 snd_cwnd, snd_ssthresh;
} __attribute__((preserve_access_index));

struct tcp_congestion_ops {
	char name[16];
	void (*init)(struct sock *sk);
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	__u32 (*undo_cwnd)(struct sock *sk);
};

/* Sets ssthresh to the current window, so that the connection continues in congestion avoidance.
 * It would do so as well with the ssthresh from before the clamp if that was lower. A higher one
 * was measured while the path was not congested. */
SEC("struct_ops")
void BPF_PROG(threshold_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	tp->snd_ssthresh = tp->snd_cwnd > 2 ? tp->snd_cwnd : 2;
}

/* The kernel requires the functions below. They are not called in practice, because no connection
 * has this congestion control for long enough. */
SEC("struct_ops")
__u32 BPF_PROG(threshold_ssthresh, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(threshold_cong_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
}

SEC("struct_ops")
__u32 BPF_PROG(threshold_undo_cwnd, struct sock *sk)
{
	return ((struct tcp_sock *)sk)->snd_cwnd;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops headgate_ops = {
	.name = "hg_threshold", /* the loader sets a different name for each process */
	.init = (void *)threshold_init,
	.ssthresh = (void *)threshold_ssthresh,
	.cong_avoid = (void *)threshold_cong_avoid,
	.undo_cwnd = (void *)threshold_undo_cwnd,
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";

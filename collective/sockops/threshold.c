//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Gives a connection its slow start threshold back.
 *
 * TCP_BPF_SNDCWND_CLAMP sets ssthresh to the clamp, and there is no option that sets it
 * alone: a connection whose clamp is lifted is in slow start, until it has lost a window of
 * packets. Only a congestion control may write ssthresh. This one does nothing else: a
 * connection has it for an instant, as its clamp is lifted. */
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

/* From the window that it has a connection goes on in congestion avoidance. So it does if it
 * had a lower threshold before it was clamped; a higher one was of a path that was not
 * congested. */
SEC("struct_ops")
void BPF_PROG(threshold_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	tp->snd_ssthresh = tp->snd_cwnd > 2 ? tp->snd_cwnd : 2;
}

/* The kernel asks for these; nobody keeps this control for long enough to need them. */
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
	.name = "hg_threshold", /* the loader gives each process its own */
	.init = (void *)threshold_init,
	.ssthresh = (void *)threshold_ssthresh,
	.cong_avoid = (void *)threshold_cong_avoid,
	.undo_cwnd = (void *)threshold_undo_cwnd,
};

char LICENSE[] SEC("license") = "Dual BSD/GPL";

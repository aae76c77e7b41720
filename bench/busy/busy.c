//go:build ignore

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Measures the processor time of the tasks of one process, kernel threads and softirqs. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

volatile const __u32 own_tgid = 0;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
};
#pragma clang attribute pop

#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

struct processor {
	__u64 busy_ns;
	__u64 since_ns;   /* start time of the current task */
	__u64 softirq_ns; /* start time of a softirq during a task that does not count; 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct processor);
} processors SEC(".maps");

static struct processor *here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&processors, &zero);
}

/* Reports whether the time of a task counts. The idle task (pid 0) is a kernel thread that
 * does not. */
static int counts(const struct task_struct *t)
{
	return t->pid != 0 && (t->tgid == own_tgid || (t->flags & PF_KTHREAD));
}

SEC("tp_btf/sched_switch")
int BPF_PROG(switched, _Bool preempt, const struct task_struct *prev)
{
	struct processor *p = here();
	__u64 now = bpf_ktime_get_ns();

	if (!p)
		return 0;
	if (p->since_ns && counts(prev))
		p->busy_ns += now - p->since_ns;
	p->since_ns = now;
	return 0;
}

SEC("tp_btf/softirq_entry")
int BPF_PROG(softirq_begins)
{
	struct processor *p = here();

	if (p && !counts(bpf_get_current_task_btf()))
		p->softirq_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(softirq_ends)
{
	struct processor *p = here();

	if (!p || !p->softirq_ns)
		return 0;
	p->busy_ns += bpf_ktime_get_ns() - p->softirq_ns;
	p->softirq_ns = 0;
	return 0;
}

// Package meter timestamps arrivals in the kernel. It counts layer-2 bytes per flow in bins of, by
// default, 1 ms, on the clock of bpf_ktime_get_ns (CLOCK_MONOTONIC).
//
// There are two places to count; any flow can use either:
//
//   - AttachDevice: a classifier (cls_bpf under clsact) at a device's ingress, for flows that are
//     assigned by port, whatever receives them. It returns TC_ACT_UNSPEC, so that later filters
//     still run.
//   - Watch: a filter on one receiving socket (SO_ATTACH_BPF). It counts what reaches the socket,
//     after everything that the host does to received packets. Where Headgate shapes "in",
//     packets pass clsact, an IFB and its queues before the socket; only this place sees the
//     result, and it leaves no filter on the device that Headgate would report as foreign.
//
// Both count super-packets as the frames they represent: each segment has its own headers.
// TestBytesAgree checks that both, and the sender's HTB class, have the same count. Duplicates that
// TCP will discard are counted as arrivals.
package meter

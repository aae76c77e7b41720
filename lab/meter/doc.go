// Package meter times arrivals in the kernel: layer-2 bytes per flow in bins of,
// by default, 1 ms, on the clock of bpf_ktime_get_ns (CLOCK_MONOTONIC).
//
// There are two places to count, and either can be used for any flow:
//
//   - AttachDevice: a classifier (cls_bpf under clsact) at a device's ingress, for
//     flows known by a port, whoever receives them. It returns TC_ACT_UNSPEC, so
//     filters after it still run.
//   - Watch: a filter on one receiving socket (SO_ATTACH_BPF). It counts what
//     reaches the socket, after everything that a host does to what it receives.
//     Where Headgate shapes "in", packets pass clsact, an IFB and its queues
//     before the socket; only this place sees the result, and it leaves no filter
//     on the device that Headgate would find to be a stranger's.
//
// Both count super-packets as the frames they stand for: headers repeat with
// every segment. TestBytesAgree holds both, and the sender's HTB class, to the
// same number. Duplicates that TCP will throw away are arrivals like others.
package meter

// Package peers limits a device by common means without Headgate, so that the benchmarks can measure
// both in the same run. Each peer takes the same plan as Headgate's engines and implements what it can
// of it:
//
//   - HTB by hand: a class per group, quanta by guarantee, u32 filters by port, FIFO leaves, as an
//     experienced administrator would configure it with tc.
//   - TBF: one bucket and one queue for all, as the CNI bandwidth plugin configures it and as a
//     hypervisor's plain limit behaves. It has no groups.
//   - Policer: a token bucket that drops excess packets, without a queue. It is a few lines of eBPF,
//     because not every kernel has act_police. The sender sees its drops as losses, which is less
//     harmful than act_police at the sender's own egress (docs/decisions/0001).
//
// Incoming traffic is redirected through an IFB, which all of them need.
//
// The commands are run by the program tc.
package peers

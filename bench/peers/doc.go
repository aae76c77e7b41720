// Package peers limits a device the way people do without Headgate, so that the
// benches can measure both in the same run. Each peer takes the same plan as
// Headgate's engines and does what it can with it:
//
//   - HTB by hand: a class per group, quanta by guarantee, u32 filters by port,
//     FIFO leaves; as a careful administrator would write it with tc.
//   - TBF: one bucket and one queue for all, as the CNI bandwidth plugin sets it up
//     and as a hypervisor's plain limit behaves. It knows no groups.
//   - Policer: a token bucket that drops what is beyond it, without a queue. It is
//     a few lines of eBPF, because not every kernel has act_police; its drops look
//     to the sender like losses, which is kinder than act_police at the sender's own
//     egress (docs/decisions/0001).
//
// Traffic that enters is sent through an IFB, as all of them need it.
//
// The tc commands are run as they would be by hand, by the program tc.
package peers

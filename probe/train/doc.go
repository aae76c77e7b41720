// Package train sends trains over a network and notes when their packets arrive.
//
// # Sending
//
// Packets without a rate leave by UDP GSO: one system call hands over up to 64 KB,
// which the device or the last step before it cuts into packets, 0.33 us apart on
// veth where single calls are 8 us apart. Where the kernel refuses that (EIO behind
// a device without checksums, EINVAL before Linux 4.18) sendmmsg does it. Paced
// packets leave one at a time from a thread that spins, is pinned to its processor,
// and is SCHED_FIFO where that is allowed; below Slot (12 us) apart they leave
// as several at once, as often. A thread that stood still goes on at its pace from
// there, and never catches up by a burst: each packet's own time is in the sample,
// and Late says what was missed in all.
//
// # Receiving
//
// Stamps are the kernel's, taken as the packet enters the stack (SO_TIMESTAMPNS):
// within 1 us, where a program's own are up to 2.6 ms late. All senders' packets
// come in through one socket, so that their order is that of the path, and what
// the socket dropped for want of room is counted (SO_RXQ_OVFL).
//
// # Units
//
// Times are ns. Those of sent packets are CLOCK_MONOTONIC's; those of arrivals
// CLOCK_REALTIME's, as the kernel gives them, and Stepped says when that was set
// meanwhile. Sizes are those of IP packets.
package train

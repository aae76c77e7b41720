// Package train sends probe trains over a network and records the arrival times of their
// packets.
//
// # Sending
//
// Packets without a rate are sent with UDP GSO. One system call passes up to 64 KB, which
// the device, or the last step before the device, segments into packets. On veth these
// are 0.33 us apart; single calls are 8 us apart. Where the kernel rejects GSO (EIO
// behind a device without checksum offload, EINVAL before Linux 4.18), sendmmsg is used. So it
// is for trains with Apart: between containers of one host nothing segments what is sent with
// GSO, and all its packets arrive at once, with one timestamp.
// Paced packets are sent one at a time from a thread that spins, is pinned to its
// processor, and is SCHED_FIFO where that is permitted. Packets less than MinSpacing (12 us)
// apart are sent in groups of several, at the same average rate. A thread that stalled
// continues at its pace from there and never catches up with a burst: the sample has each
// packet's own time, and Delay has the total delay.
//
// # Receiving
//
// Timestamps are the kernel's, taken when the packet enters the stack (SO_TIMESTAMPNS).
// They are accurate to 1 us, while timestamps of a program are up to 2.6 ms late. Packets
// of all senders arrive at one socket, so that their order is the order on the path.
// Packets that the socket dropped because its buffer was full are counted (SO_RXQ_OVFL).
//
// # Units
//
// Times are in ns. Send times are from CLOCK_MONOTONIC. Arrival times are from
// CLOCK_REALTIME, as the kernel gives them; Stepped reports whether that clock was set
// during the train. Sizes are sizes of IP packets.
package train

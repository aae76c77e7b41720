// Package wire is a link with delay, in user space: two TAP devices, and for
// each direction one thread that holds every frame for the delay and writes it
// to the other device.
//
// It works at layer 2, so that any protocol crosses it, and with IFF_VNET_HDR, so
// that super-packets of up to 64 KB cross whole and a gigabit costs some thousand
// system calls a second rather than a hundred thousand. It exists because netem
// is a module that not every kernel has.
//
// What it does not do: rates (an HTB class on the sending TAP does), loss, jitter,
// reordering. A frame that finds the ring full is dropped and counted.
//
// Times are kernel monotonic. The emulator lives in the calling process and ends
// with it.
package wire

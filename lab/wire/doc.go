// Package wire puts the model of a link, lab/link, between two TAP devices, in
// user space: one thread for each direction offers the model what it reads from
// one device, and writes to the other what the model releases.
//
// It works at layer 2, so that any protocol crosses it, and with IFF_VNET_HDR, so
// that the kernel hands over super-packets of up to 64 KB and a gigabit costs some
// thousand system calls a second rather than a hundred thousand. It exists because
// netem is a module that not every kernel has, and draws a loss for a super-packet
// as a whole.
//
// # Super-packets
//
// The model sees segments: each super-packet of TCP or UDP (UDP_SEGMENT) is offered
// as the frames that a device would have made of it, all at once, as its sender
// gave them; rates, queues, losses and marks are the segments'. Those of one
// super-packet that are released within Together (250 us) leave as one smaller
// super-packet again, with the sequence number, lengths, flags and sums that it
// needs (frame.go); the kernel's own segmentation gives the same bytes in the end,
// which is held against gopacket. With Exact every segment leaves alone.
//
// A direction wakes up every Together at most when it is busy (after 16 times in a
// row), takes in what has come and writes what is due; so a busy link adds 0.13 ms
// in the mean and 0.25 at most, at either end of its delay. Above 500 Mbit/s it is
// TogetherFast (550 us), and a super-packet of 1 Gbit/s crosses whole: a wake-up with
// its write, the receiver's work on that and an acknowledgement cost far more than
// the bytes. An idle link adds nothing. Exact turns this off, too, and spends the
// last 50 us awake.
//
// # Memory
//
// A frame is read into the direction's ring and stays there until its last segment
// has left. The ring has room for a quarter more than queue, delay and ends that
// sleep hold at the slowest rate, 8 MiB besides, and 512 MiB at most (and an eighth
// of it for the list); only what was used once takes memory. What finds it full is
// dropped and counted; so is what the device dropped because it was not read in
// time, and what the other did not take. A run with any of these says nothing about
// the link.
//
// # Lateness
//
// Each write is compared with the time that the model gave it. A machine that
// stands still while it waits for frames is noticed by the direction's own clock,
// which it looks at every 2 ms while there is traffic: a longer gap counts as late
// if frames were found after it. Shorter ones, and those that began with the first
// frame after 0.1 s of silence, are not noticed.
//
// # Measured
//
// On two virtual cores which also ran sender and receiver, of a machine that often
// gives a tenth to a half of its time to others: a real-time thread that only
// sleeps for 1 ms was then late by more than 5 ms four times a second, and at worst
// by 125. BenchmarkTCP and BenchmarkPing say what part was stolen.
//
//   - Cost, of one core, both directions together: 1 Gbit/s of TCP at 50 ms of RTT
//     12 to 17 % (22 to 31 % on the same machine when a fast direction, too, woke up
//     every 250 us); two thirds of it are within the writes, and so the receiving
//     stack's, and in going to sleep. 10 Gbit/s 78 %. Three connections, whose frames
//     are smaller, 27 %. Go's own watcher of threads (sysmon) takes 5 % besides,
//     because threads that sleep in system calls keep it busy.
//   - Rate: 10 Mbit/s of TCP +0.01 %, 1 Gbit/s -0.02 % when its queue of 0.3 s does
//     not overflow (16 % stolen), 10 Gbit/s at 10 ms +0.01 % (nothing stolen). With
//     20 to 45 % stolen and the usual queue of 50 ms up to a half of the rate is
//     missing: sender and receiver stand still, too.
//   - Delay: an idle link of 10 ms is 0.07 ms over at the median and 0.16 at p99
//     with nothing stolen. With 3 to 16 % stolen the median is at most 0.11 over from
//     1 to 600 ms, and p99 3 to 25. Under 200 Mbit/s of TCP at 1 ms, 5 % stolen, 0.05
//     and 2.6; the bounds of 1 ms idle and 2 loaded are the machine's to keep.
//   - Exact, 90 Mbit/s: late by 0.5 us at the median and 0.9 at p90.
//
// Times are CLOCK_MONOTONIC. The emulator lives in the calling process and ends
// with it.
package wire

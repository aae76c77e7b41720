// Package wire connects two TAP devices through the model of a link, lab/link, in user space. One
// thread for each direction offers to the model what it reads from one device, and writes to the other
// what the model releases.
//
// It works at layer 2, so that any protocol passes, and with IFF_VNET_HDR, so that the kernel passes
// super-packets of up to 64 KB and a gigabit costs some thousand system calls a second instead of a
// hundred thousand. It exists because netem is a module that not every kernel has, and because netem
// loses super-packets as a whole.
//
// # Super-packets
//
// The model works on segments: each super-packet of TCP or UDP (UDP_SEGMENT) is offered as the frames
// that a device would have made of it, all at the same time, as its sender sent them. Rates, queues,
// losses and marks are those of segments. Segments of one super-packet that are released within
// Together (250 us) are written as one smaller super-packet, with the required sequence number,
// lengths, flags and checksums (frame.go). The kernel's own segmentation gives the same bytes, which a
// test checks against gopacket. With Exact every segment is written alone.
//
// A busy direction wakes up at most every Together (after 16 times in a row), reads what has arrived
// and writes what is due. A busy link therefore adds 0.13 ms on average and 0.25 at most, at either
// end of its delay. Above 500 Mbit/s it is TogetherFast (550 us), and a super-packet of 1 Gbit/s
// crosses whole: a wake-up with its write, the receiver's processing and an acknowledgement cost far
// more than the bytes. An idle link adds nothing. Exact turns this off, and busy-waits for the last 50
// us.
//
// # Memory
//
// A frame is read into the direction's ring and stays there until its last segment has left. The ring
// is a quarter larger than what queue, delay and sleeping ends hold at the slowest rate, and has 8 MiB
// more, up to 512 MiB (and an eighth of it for the list); only parts that were used take memory.
// Frames that find it full are dropped and counted, and so are frames that the sending device dropped
// because they were not read in time, and those that the receiving device did not accept. The results
// of a run with any of these are not valid.
//
// # Lateness
//
// Each write is compared with the time that the model gave it. A stall of the machine while it waits
// for frames is noticed by the direction's own clock, which it reads every 2 ms while there is
// traffic: a longer gap counts as late if frames were found after it. Shorter stalls, and those that
// began with the first frame after 0.1 s without traffic, are not noticed.
//
// # Measured
//
// On two virtual cores which also ran sender and receiver, on a machine with often 10 to 50 % steal
// time: a real-time thread that only sleeps for 1 ms was then late by more than 5 ms four times a
// second, and at worst by 125. BenchmarkTCP and BenchmarkPing report the steal time.
//
//   - Cost, of one core, both directions together: 1 Gbit/s of TCP at 50 ms of RTT 12 to 17 % (22 to
//     31 % on the same machine when a fast direction also woke up every 250 us); two thirds of it are
//     in the writes, which include the receiving stack, and in going to sleep. 10 Gbit/s 78 %. Three
//     connections, whose frames are smaller, 27 %. Go's thread monitor (sysmon) takes another 5 %,
//     because threads that sleep in system calls keep it busy.
//   - Rate: 10 Mbit/s of TCP +0.01 %, 1 Gbit/s -0.02 % when its queue of 0.3 s does not overflow (16
//     % stolen), 10 Gbit/s at 10 ms +0.01 % (nothing stolen). With 20 to 45 % stolen and the usual
//     queue of 50 ms up to a half of the rate is missing, because sender and receiver stall as well.
//   - Delay: an idle link of 10 ms is 0.07 ms over at the median and 0.16 at p99 with nothing
//     stolen. With 3 to 16 % stolen the median is at most 0.11 over from 1 to 600 ms, and p99 3 to 25.
//     Under 200 Mbit/s of TCP at 1 ms, 5 % stolen, 0.05 and 2.6. Whether the limits of 1 ms idle and 2
//     loaded are met depends on the machine.
//   - Exact, 90 Mbit/s: late by 0.5 us at the median and 0.9 at p90.
//
// Times are CLOCK_MONOTONIC. The emulator runs in the calling process and ends with it.
package wire

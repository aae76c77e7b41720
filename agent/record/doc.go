// Package record stores usage records: what was offered to each group of this host, what the group
// delivered, lent and borrowed, and the seconds in which its guarantee was unmet. The records are
// per minute and are kept on disk for a week.
//
// The usage of a second follows from the kernel's counters in two readings (package usage). A
// group's borrowed bytes are those delivered above its guarantee. Its lent bytes are its part of
// the bytes that other groups borrowed, in proportion to its part of the unused guarantees.
//
// The kernel counts from the creation of a group. A reading that is lower than the previous one is
// from a group that was recreated, and is counted from 0.
//
// A file has only complete minutes. The current minute is written every few seconds, with the
// counters of its last reading. A process that is killed and restarted continues from both, so that
// nothing is counted twice or lost. A device that cannot be read for a while has the bytes of that
// time in its next reading.
package record

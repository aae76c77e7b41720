// Package record is the proof of delivery: what each group of this host was offered, had, lent
// and borrowed, and in which seconds it wanted its guarantee and did not get it, by the minute,
// for a week, on disk.
//
// A second is what the kernel counted between two readings (usage). What a group borrowed is what
// left beyond its guarantee; what it lent is its part of what others borrowed, as its part of all that
// was left unused.
//
// Counters are the kernel's since a group was made. A reading that is lower than the last is of
// a group that was made anew, and counts from 0.
//
// Minutes are whole on disk, the current one is written every few seconds with the counters that
// it was read at: a process that is killed and started again goes on with both, so that nothing is
// counted twice and nothing is left out. A device that cannot be read for a while has in its next
// reading what it had meanwhile.
package record

// Package schedule decides which hosts measure to each other, and when. It starts
// measurements at the intervals that the operator configures, never two at the same time
// over one host or one shared link, within a daily budget of bytes, and not in quiet
// hours.
//
// The package has functions of the schedule, the time, and the past measurements. It does
// not measure, store state or read a clock.
//
// # Order
//
// Measurements start in the order in which they became due. A measurement that waits for
// a host or a link also reserves the others that it needs, so that no later one takes
// them. A measurement therefore waits at most for all that were due before it, one after
// the other, and none starves. The price is that a host is sometimes idle although a
// measurement could use it.
//
// # Budget
//
// The maximum that a measurement may send is known before the start (Schedule.Cost), and
// is reserved at both hosts. At the end, the bytes that were sent replace the
// reservation. A measurement without a result counts in full. One that spans midnight
// counts on both days.
package schedule

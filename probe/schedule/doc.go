// Package schedule decides which hosts of a service measure to each other, and when: as often as
// an operator says, never two measurements through one host or through one link that hosts share,
// within a budget of bytes a day, and not in quiet hours.
//
// It is functions of what is wanted, the time, and what was before. Nothing in it measures,
// remembers or asks a clock.
//
// # Order
//
// What is due is measured in the order in which it became so. A measurement that has to wait for a
// host or a link keeps the others that it needs, too: whatever comes after it in the order does not get
// them. So each waits no longer than all that were due before it take, one after the other, and
// none starves; the price is a host that is idle now and then although somebody could measure
// through it.
//
// # Budget
//
// What a measurement may send at the most is known before it begins (Schedule.Cost), and is counted
// then, at both hosts. When it is over, what it has sent takes the place of that. One of which
// nothing is heard any more counts as a whole, and one that passes midnight on both days.
package schedule

package circuits

import (
	"math"

	"headgate.dev/headgate/unit"
)

// Constants of waiting, chosen for Headgate from 400 readings of routers at 100 Mbit/s.
const (
	// backlogged is the part of a second in which a queue was not empty, above which its sender may want to send more than it may. A TCP connection
	// at its limit has 0.96 to 1. One that has all it wants has that too if its limit is hardly above it.
	backlogged = 0.95
	// A sender has leastRoom above what it wants, so that it shows if it wants more. If a burst passed for that, it gets twice as much, up to mostRoom, and
	// two thirds of what it has more than leastRoom are gone after 1/roomDecay cycles.
	leastRoom, mostRoom, roomDecay = 0.03, 0.12, 1. / 64
	// usedRoom is the part of the room above which a sender wants more.
	usedRoom = 2. / 3
	// takesMore is how much more than its former limit a sender offers that wanted more.
	takesMore = 1.1
	// For up to recovery readings after drops a sender counts as one that wants the limit under which they occurred. TCP waits for its timer, and
	// then doubles its rate from round trip to round trip. In the first roomReadings of them, which is a cycle, it counts as one that wants dropRoom times
	// that, which shows whether it wants more: if all of them did, best effort lost up to a fifth of a link for three seconds after each burst that a meter cut.
	recovery, roomReadings, dropRoom = 6, 2, 1.25
	// A sender has recovered that offers more than the limit was under which it was dropped, or at least nearLimit of it, and as much as before within
	// sameRate.
	nearLimit, sameRate = 0.75, 0.02
)

// waiting is what is known of a sender whose packets wait in the queue of an agent, or are dropped by a meter. TCP offers hardly more than it may send, so
// that this hides what it wants: a higher limit shows it.
type waiting struct {
	wants float64 // what it offered when it had room, in bit/s, 0 if it never had
	room  float64 // part of wants that its limit is to be above it
	asked float64 // the limit under which it was taken to want more, 0 if it was not in the last reading
	lost  int     // readings for which it recovers from drops
	last  float64 // what it offered at the latest reading
}

// least returns the least that the sender wants. held reports that its limit holds it: its queue was never empty, or a meter dropped its packets. It then has
// twice its limit, so that it gets more if there is more, unless it has room above what it wants and does not use it: without that a sender at 98 % of its
// limit had twice as much in 43 of 60 cycles, and those of lower classes went without (routers at 100 Mbit/s with TCP: they had 93.7 % of what they could have).
func (w *waiting) least(offered, limit unit.Rate, held bool) unit.Rate {
	o, l := float64(offered), float64(limit)
	w.room = max(leastRoom, w.room-(w.room-leastRoom)*roomDecay)
	if w.asked > 0 && l >= takesMore*w.asked && o < takesMore*w.asked { // it did not want more
		w.wants, w.room = o, min(2*w.room, mostRoom)
	}
	w.asked = 0
	switch {
	case held && l >= w.wants && o > (1+usedRoom*w.room)*w.wants:
		w.asked = l
		return 2 * limit
	case !held || l >= w.wants:
		w.sees(o)
	}
	return unit.Rate((1 + w.room) * w.wants)
}

// dropped returns the least that a sender wants whose packets a meter drops, 0 if that is what it offers.
func (w *waiting) dropped(offered, limit unit.Rate, drops bool) unit.Rate {
	o, last := float64(offered), w.last
	w.last = o
	switch {
	case drops:
		w.lost, w.asked = recovery, float64(limit)
	case o > w.asked, o > nearLimit*w.asked && math.Abs(o-last) < sameRate*o:
		w.lost = 0
	case w.lost > 0:
		w.lost--
	}
	switch {
	case w.lost == 0:
		return 0
	case w.lost > recovery-roomReadings:
		return unit.Rate(dropRoom * w.asked)
	}
	return unit.Rate(w.asked)
}

// sees takes what it offers while it has room: a mean over a few cycles, as TCP sends in bursts, and at once a rate that differs from it.
func (w *waiting) sees(offered float64) {
	if offered > w.wants/takesMore && offered < w.wants*takesMore {
		offered = w.wants + (offered-w.wants)/4
	}
	w.wants = offered
}

package reserve

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// A volume is moved at one constant rate. Which rate is a choice: a low one may start at once, and a high one may wait
// for others to end, and still finish first. quickest tries the rates of a ladder, from the most that there would be
// without reservations, each half of the one before it, and the least that still moves the volume in time. For each it
// takes the earliest start, and then the most that fits from there, which shortens the transfer. Of all these it takes
// the one that ends first; of equal ends the first.
//
// This is not the optimum over all rates and starts, and a volume can be refused that another rate would move in time.

// rungs is the number of rates of the ladder: the last one is 1/16 of the first.
const rungs = 5

// MaxVolume is the greatest volume of a request: 1 EB, whose bits fit 63 bits.
const MaxVolume unit.Bytes = 1e18

func (l *ledger) planVolume(r Request, now time.Time) (Reservation, *Refusal) {
	a := newAsk(r)
	from, until := moment(r.begin(now)), moment(r.Until)
	best, tried := l.quickest(a, r.Volume, from, until)
	if best.routes != nil {
		return best.ask.grant(r, best.from, best.to, best.divide(best.routes)), nil
	}
	// The bottleneck is that of the least rate, at which the transfer takes all the time.
	a.forward = rateFor(r.Volume, until-from)
	b := l.blame(a, from, until)
	e := l.refuse(r, a, b)
	if e.Reason == NoPath {
		return Reservation{}, e
	}
	e.Reason = TooLate
	e.searched(tried)
	less, longer := r, r
	less.Volume = unit.Bytes(scaled(b.forward, until-from, 8*int64(time.Second)))
	if less.Volume > 0 {
		e.Most = &less
	}
	if best, _ := l.quickest(a, r.Volume, from, moment(last)); best.routes != nil {
		// The ladder does not depend on the deadline, so that the same rate is found again.
		longer.Start, longer.Until = clock(from), clock(best.to)
		if again, _ := l.quickest(a, r.Volume, from, best.to); again.routes != nil {
			e.Window = &longer
		}
	}
	return Reservation{}, e
}

// transfer is a way to move a volume, at the rate of the ask.
type transfer struct {
	ask
	from, to int64
	routes   []fabric.Path
}

// quickest returns the transfer that ends first, without routes if none ends by until. tried is where the first of the
// searches was that were given up, never if none was.
func (l *ledger) quickest(a ask, volume unit.Bytes, from, until int64) (best transfer, tried int64) {
	tried = never
	a.forward = 1
	most := l.most(a, l.unreserved)
	if most == 0 {
		return best, tried
	}
	var rates []int64
	for i := rungs - 1; i >= 0; i-- { // low rates first: a transfer that is found bounds the search for the others
		rates = append(rates, max(1, most>>i))
	}
	found := false
	for _, rate := range append(rates, rateFor(volume, until-from)) {
		a.forward = rate
		t, gaveUp := l.move(a, volume, from, until-timeFor(volume, most))
		tried = min(tried, gaveUp)
		if t.to <= until {
			best, found = t, true
			until = t.to - 1 // the next one must end earlier
		}
	}
	if found {
		best.routes = l.find(best.ask, best.from, best.to)
	}
	return best, tried
}

// move returns the transfer that has at least the rate of the ask and starts first, and one that ends never if it starts
// after latest. tried is that of the search for the start (earliest).
func (l *ledger) move(a ask, volume unit.Bytes, from, latest int64) (t transfer, tried int64) {
	t = transfer{ask: a, to: never}
	duration := timeFor(volume, a.forward)
	if duration > moment(last)-from || from > latest {
		return t, never
	}
	start, tried := l.earliest(a, from, latest, duration)
	if start == never {
		return t, tried
	}
	for { // in less time there may be more
		more := l.most(a, l.during(start, start+duration))
		if more <= a.forward {
			return transfer{ask: a, from: start, to: start + duration}, tried
		}
		a.forward, duration = more, timeFor(volume, more)
	}
}

// timeFor returns how long a volume takes at a rate, in nanoseconds, rounded up.
func timeFor(volume unit.Bytes, rate int64) int64 {
	return scaledUp(8*int64(volume), int64(time.Second), rate)
}

// rateFor returns the least rate that moves a volume within a time.
func rateFor(volume unit.Bytes, duration int64) int64 {
	return scaledUp(8*int64(volume), int64(time.Second), duration)
}

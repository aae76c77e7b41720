package reserve

import (
	"time"

	"headgate.dev/headgate/unit"
)

// plan returns the reservation that a request gets, or the refusal. It changes nothing.
func (l *ledger) plan(r Request, now time.Time) (Reservation, *Refusal) {
	if r.Volume > 0 {
		return l.planVolume(r, now)
	}
	a := newAsk(r)
	from, duration := moment(r.begin(now)), int64(r.Duration)
	if paths := l.find(a, from, from+duration); paths != nil {
		return a.grant(r, from, from+duration, a.divide(paths)), nil
	}
	soonest, tried := l.earliest(a, from, moment(last), duration)
	if !r.Until.IsZero() && soonest <= moment(r.Until)-duration {
		return a.grant(r, soonest, soonest+duration, a.divide(l.find(a, soonest, soonest+duration))), nil
	}
	e := l.refusal(r, a, from, from+duration)
	e.searched(tried)
	if soonest < moment(last)-duration {
		later, window := r, r
		later.Start, later.Until = clock(soonest), time.Time{}
		window.Start, window.Until = clock(from), clock(soonest+duration)
		e.Earliest, e.Window = &later, &window
	}
	return Reservation{}, e
}

// refusal says why there are no paths for an ask in [from, to), and what there is at most.
func (l *ledger) refusal(r Request, a ask, from, to int64) *Refusal {
	b := l.blame(a, from, to)
	e := l.refuse(r, a, b)
	if b.forward > 0 {
		less := a.with(b.forward)
		most := r
		most.Forward, most.Reverse = unit.Rate(less.forward), unit.Rate(less.reverse)
		if most.Reverse > 0 || r.Reverse == 0 {
			e.Most = &most
		}
	}
	return e
}

// begin is the earliest start of a request.
func (r Request) begin(now time.Time) time.Time {
	if r.Start.IsZero() {
		return now
	}
	return r.Start
}

func (a ask) grant(r Request, from, to int64, paths []Path) Reservation {
	return Reservation{
		Request: r, Paths: paths, Forward: unit.Rate(a.forward), Reverse: unit.Rate(a.reverse),
		Start: clock(from), End: clock(to), Since: clock(from), Generation: 1,
	}
}

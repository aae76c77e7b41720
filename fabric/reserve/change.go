package reserve

import (
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Change is what is to be another in a reservation, from now on or from its start. What is nil or zero stays.
type Change struct {
	Forward, Reverse *unit.Rate
	// End is the new end. One after a reservation's end extends it, also in the grace of Expire.
	End time.Time
	// Move looks for the best paths. Without it the paths stay if they have enough bandwidth.
	Move bool
	// Avoid replaces the links that the paths may not use. Paths that use one are moved.
	Avoid []fabric.LinkID
}

// WhatIfChange returns what Change would return, without effect.
func (b *Book) WhatIfChange(id ID, c Change, now time.Time) (Reservation, error) {
	was, ok := b.Get(id)
	if !ok {
		return Reservation{}, b.unknown(id)
	}
	r := was
	if c.Forward != nil {
		r.Forward = *c.Forward
	}
	if c.Reverse != nil {
		r.Reverse = *c.Reverse
	}
	if !c.End.IsZero() {
		r.End = c.End
	}
	if c.Avoid != nil {
		r.Request.Avoid = c.Avoid
	}
	r.Since = r.remains(now)
	if !r.End.After(r.Since) {
		return Reservation{}, invalid("end", "%s is not after %s: write a later time, or cancel the reservation", stamp(r.End), stamp(r.Since))
	}
	l := b.ledger.copy()
	l.drop(was) // a reservation does not compete with itself
	q := r.rest()
	if err := l.check(q, now); err != nil {
		return Reservation{}, err
	}
	a, from, to := newAsk(q), moment(r.Since), moment(r.End)
	if routes := routesOf(was.Paths); !c.Move && len(routes) == a.count && l.carries(a, routes, from, to) {
		r.Paths = a.divide(routes)
	} else if routes := l.find(a, from, to); routes != nil {
		r.Paths = a.divide(routes)
	} else {
		return Reservation{}, l.refusal(q, a, from, to) // a change has no other start
	}
	if r.Request.Volume == 0 {
		r.Request.Forward, r.Request.Reverse = r.Forward, r.Reverse
	}
	r.Degraded = ""
	r.Generation++
	return r, nil
}

// Change changes a reservation, or leaves it as it is. The bandwidth that it has counts as free for it, so that on a link
// of the old and the new paths it is counted once: the caller adds the new paths before it removes the old ones, and on
// such a link the reservation has one rate. The error is a *Refusal, of which Most has the rates that would be granted,
// or joins an *Invalid for each mistake.
func (b *Book) Change(id ID, c Change, now time.Time) (Reservation, error) {
	r, err := b.WhatIfChange(id, c, now)
	if err == nil {
		b.set(r)
	}
	return r, err
}

// remains returns from when on a reservation can still change: from its start, or from now.
func (r Reservation) remains(now time.Time) time.Time {
	if now.After(r.Start) {
		return now
	}
	return r.Start
}

// rest is a request for what remains of a reservation, from Since on.
func (r Reservation) rest() Request {
	q := r.Request
	q.Volume, q.Until = 0, time.Time{}
	q.Forward, q.Reverse = r.Forward, r.Reverse
	q.Start, q.Duration = r.Since, r.End.Sub(r.Since)
	return q
}

func routesOf(paths []Path) (routes []fabric.Path) {
	for _, p := range paths {
		routes = append(routes, p.Links)
	}
	return routes
}

// carries reports whether routes have enough bandwidth for an ask at every moment of [from, to).
func (l *ledger) carries(a ask, routes []fabric.Path, from, to int64) bool {
	if !l.endsCarry(a, from, to) {
		return false
	}
	for _, p := range routes {
		for _, id := range p {
			if a.closed[id] || !l.has(id, a.part(a.forward), from, to) || a.reverse > 0 && !l.has(id.Reverse(), a.part(a.reverse), from, to) {
				return false
			}
		}
	}
	return true
}

func (l *ledger) has(id fabric.LinkID, rate, from, to int64) bool {
	i, ok := l.index[id]
	return ok && l.usable[i] && l.lines[i].free(from, to) >= rate
}

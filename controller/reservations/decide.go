package reservations

import (
	"errors"
	"time"

	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
)

// Decision is one change while it is decided. Each method may be called once.
type Decision struct {
	// Tx is the transaction that writes the change.
	Tx    *store.Tx
	owner *Owner
	now   time.Time
	enter func() // puts the change into the book
}

// ErrNotFound means that there is no reservation with the name.
var ErrNotFound = errors.New("no such reservation exists")

// Get returns a reservation as it is before the change.
func (d *Decision) Get(id reserve.ID) (store.Reservation, bool) {
	r, ok := d.owner.book.Get(id)
	return documentOf(r, d.owner.times[id]), ok
}

// Create grants a request within the bounds of its tenant; nil bounds nothing. The error is a *reserve.Refusal, or joins a
// *reserve.Invalid for each mistake.
func (d *Decision) Create(r reserve.Request, within *store.ReservationBounds) (store.Reservation, error) {
	granted, err := d.owner.whatIf(r, within, d.now)
	if err != nil {
		return store.Reservation{}, err
	}
	return d.put(granted)
}

// Change makes a reservation the one that would be granted for another request (changeTo). With move it gets the best
// paths, and else it keeps its paths if they have enough bandwidth. It changes nothing, and returns the reservation, if the
// request is the one that was granted. Errors are those of Create, and ErrNotFound.
func (d *Decision) Change(r reserve.Request, move bool, within *store.ReservationBounds) (store.Reservation, error) {
	was, ok := d.owner.book.Get(r.ID)
	if !ok {
		return store.Reservation{}, ErrNotFound
	}
	r, err := resolveLike(r, was.Request, d.owner.top, d.owner.joined, within == nil)
	if err != nil {
		return store.Reservation{}, err
	}
	change, err := changeTo(was, r)
	if err != nil {
		return store.Reservation{}, err
	}
	change.Move = move
	if change.nothing() {
		return documentOf(was, d.owner.times[r.ID]), nil
	}
	granted, err := d.owner.book.WhatIfChange(r.ID, change.Change, d.now)
	if err != nil {
		return store.Reservation{}, offersWithin(err, within, d.now)
	}
	if granted.Request.Volume == 0 {
		granted.Request.Duration = granted.End.Sub(granted.Start)
	}
	if err := d.owner.checkStreams(granted, within); err != nil {
		return store.Reservation{}, err
	}
	// A tenant whose bounds were lowered may keep what it has, or reduce it.
	if promised(granted) > promised(was) || granted.End.After(was.End) {
		if err := d.owner.checkGrant(granted, within, d.now); err != nil {
			return store.Reservation{}, err
		}
	}
	doc, err := d.put(granted)
	enter := d.enter
	d.enter = func() {
		enter()
		d.owner.freed = true
	}
	return doc, err
}

// put writes a reservation.
func (d *Decision) put(r reserve.Reservation) (store.Reservation, error) {
	at := d.owner.changedAt(r.Request.ID, d.now)
	doc := documentOf(r, at)
	d.enter = func() { d.owner.set(r, at) }
	if err := d.share(endsOf(r), &r, r.Request.ID); err != nil {
		return store.Reservation{}, err
	}
	return doc, d.Tx.Put(store.ReservationKey(r.Request.ID), doc)
}

// Cancel removes a reservation, and returns it. The error is ErrNotFound.
func (d *Decision) Cancel(id reserve.ID) (store.Reservation, error) {
	doc, ok := d.Get(id)
	if !ok {
		return doc, ErrNotFound
	}
	d.Tx.Delete(store.ReservationKey(id))
	d.enter = func() {
		d.owner.remove(id)
		d.owner.freed = true
	}
	r, _ := d.owner.book.Get(id)
	return doc, d.share(endsOf(r), nil, id)
}

// WhatIf returns what Create would return, without effect.
func (o *Owner) WhatIf(r reserve.Request, within *store.ReservationBounds) (store.Reservation, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	now := o.now()
	granted, err := o.whatIf(r, within, now)
	if err != nil {
		return store.Reservation{}, err
	}
	return documentOf(granted, o.changedAt(r.ID, now)), nil
}

func (o *Owner) whatIf(r reserve.Request, within *store.ReservationBounds, now time.Time) (granted reserve.Reservation, err error) {
	if err := o.checkRequest(r, within); err != nil {
		return granted, err
	}
	if r, err = resolve(r, o.top, o.joined, within == nil); err != nil {
		return granted, err
	}
	if err := checkEnds(r, within); err != nil {
		return granted, err
	}
	if r, err = carry(r, o.top, o.choose); err != nil {
		return granted, err
	}
	if granted, err = o.book.WhatIf(r, now); err != nil {
		return granted, offersWithin(err, within, now)
	}
	if err := o.checkStreams(granted, within); err != nil {
		return granted, err
	}
	return granted, o.checkGrant(granted, within, now)
}

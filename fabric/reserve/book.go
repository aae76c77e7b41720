package reserve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/unit"
)

// Book has all reservations of a network, and decides about requests. Its caller guards it: methods that change it need
// it alone, and the others may run at the same time as each other. The result of each method depends on the book, the
// arguments and the time given alone, so that a log of calls can be replayed.
type Book struct {
	limits       Limits
	ledger       *ledger
	reservations map[ID]*Reservation // none is changed, only replaced
	held         map[fabric.LinkID]map[string]unit.Rate
}

// NewBook returns a book without reservations. The error has an *Invalid for each mistake in limits.
func NewBook(top *fabric.Topology, limits Limits) (*Book, error) {
	var errs []error
	for _, id := range slices.SortedFunc(maps.Keys(limits.Ports), fabric.PortID.Compare) {
		if r := limits.Ports[id]; r == 0 || r > unit.MaxRate {
			errs = append(errs, invalid("capacity", "%v is not the capacity of port %v: write a rate up to %v", r, id, unit.MaxRate))
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return &Book{limits: limits, ledger: newLedger(top, limits), reservations: map[ID]*Reservation{}, held: map[fabric.LinkID]map[string]unit.Rate{}}, nil
}

// Clone returns a book that can be changed without effect on this one, for example to plan a change that is entered
// only when it is stored. It takes as long as there are reservations and links: 10,000 reservations take a few
// milliseconds.
func (b *Book) Clone() *Book {
	c := *b
	c.ledger, c.reservations, c.held = b.ledger.copy(), maps.Clone(b.reservations), map[fabric.LinkID]map[string]unit.Rate{}
	for id, claims := range b.held {
		c.held[id] = maps.Clone(claims)
	}
	return &c
}

// Get returns a reservation.
func (b *Book) Get(id ID) (Reservation, bool) {
	r, ok := b.reservations[id]
	if !ok {
		return Reservation{}, false
	}
	return *r, true
}

// All returns all reservations, by tenant and name.
func (b *Book) All() []Reservation { return b.list(func(*Reservation) bool { return true }) }

// Between returns the reservations that have a moment in [from, to), by tenant and name.
func (b *Book) Between(from, to time.Time) []Reservation {
	return b.list(func(r *Reservation) bool { return r.within(from, to) })
}

// Carried is Between for the reservations that relay agents carry, which are few.
func (b *Book) Carried(from, to time.Time) []Reservation {
	return b.list(func(r *Reservation) bool { return r.Request.Carried != nil && r.within(from, to) })
}

// within reports whether a reservation has a moment in [from, to).
func (r *Reservation) within(from, to time.Time) bool {
	return r.Start.Before(to) && from.Before(r.End)
}

// list returns some reservations, by tenant and name.
func (b *Book) list(which func(*Reservation) bool) []Reservation {
	var some []*Reservation // a reservation is large to move
	for _, r := range b.reservations {
		if which(r) {
			some = append(some, r)
		}
	}
	slices.SortFunc(some, func(r, s *Reservation) int { return compare(r.Request.ID, s.Request.ID) })
	all := make([]Reservation, len(some))
	for i, r := range some {
		all[i] = *r
	}
	return all
}

func compare(a, b ID) int {
	if c := strings.Compare(a.Tenant, b.Tenant); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

// WhatIf returns what Admit would return, without effect.
func (b *Book) WhatIf(r Request, now time.Time) (Reservation, error) {
	err := b.ledger.check(r, now)
	if _, exists := b.reservations[r.ID]; exists {
		err = errors.Join(err, invalid("name", "reservation %v exists: choose another name, or change it", r.ID))
	}
	if err != nil {
		return Reservation{}, err
	}
	granted, refusal := b.ledger.plan(r, now)
	if refusal != nil {
		return Reservation{}, refusal
	}
	return granted, nil
}

// Admit grants a request: it takes paths with enough bandwidth at every moment, the least loaded ones (find), at the
// earliest start that the request allows. The error is a *Refusal, or joins an *Invalid for each mistake.
func (b *Book) Admit(r Request, now time.Time) (Reservation, error) {
	granted, err := b.WhatIf(r, now)
	if err == nil {
		b.set(granted)
	}
	return granted, err
}

// set adds a reservation, or replaces it.
func (b *Book) set(r Reservation) {
	if was, ok := b.reservations[r.Request.ID]; ok {
		b.ledger.drop(*was)
	}
	b.reservations[r.Request.ID] = &r
	b.ledger.take(r)
}

// Restore adds a reservation that was granted before, for example as it is stored, without asking for bandwidth. Reroute
// repairs what does not fit. The error says that the reservation is in the book.
func (b *Book) Restore(r Reservation) error {
	if _, exists := b.reservations[r.Request.ID]; exists {
		return invalid("name", "reservation %v is in the book: it cannot be restored again", r.Request.ID)
	}
	b.set(r)
	return nil
}

// Cancel removes a reservation, and returns it. The book is then as if it had never been there.
func (b *Book) Cancel(id ID) (Reservation, error) {
	r, ok := b.reservations[id]
	if !ok {
		return Reservation{}, b.unknown(id)
	}
	b.ledger.drop(*r)
	delete(b.reservations, id)
	return *r, nil
}

func (b *Book) unknown(id ID) error {
	return invalid("name", "there is no reservation %v: list the reservations, and correct the name", id)
}

// Expire removes the reservations that ended at least grace ago, and returns them by tenant and name. From its end a
// reservation has no bandwidth; in the grace it is kept, so that Change can extend it.
func (b *Book) Expire(now time.Time, grace time.Duration) (removed []Reservation) {
	for id, r := range b.reservations {
		if !now.Before(r.End.Add(grace)) {
			b.ledger.drop(*r)
			delete(b.reservations, id)
			removed = append(removed, *r)
		}
	}
	slices.SortFunc(removed, func(r, s Reservation) int { return compare(r.Request.ID, s.Request.ID) })
	return removed
}

// Hold claims a rate of a link at every moment, and replaces what the same claimant had there; 0 releases it. It is for
// guarantees that are not reservations: the total of a host's bandwidth groups on its Uplink, without those groups that
// were made for a reservation, which the book counts. The error is a *Refusal if reservations after now leave less, or an
// *Invalid.
func (b *Book) Hold(link fabric.LinkID, rate unit.Rate, who string, now time.Time) error {
	i, ok := b.ledger.index[link]
	if !ok {
		return invalid("link", "%s is not in the network: correct it, or add its switch", b.ledger.label(link))
	}
	n := &b.ledger.lines[i]
	if rate > unit.MaxRate {
		return invalid("rate", "%v is more than any link carries: write at most %v", rate, unit.MaxRate)
	}
	more := int64(rate) - int64(b.held[link][who])
	if at := n.firstOver(moment(now), n.leaves(more)); more > 0 && at != never {
		free := max(0, n.limit-n.held-n.level(at)+int64(b.held[link][who]))
		e := &Refusal{Link: link, At: clock(at), Free: unit.Rate(free), Needed: rate}
		e.text = fmt.Sprintf("%s has %v of the %v for %s at %s: claim less, or cancel reservations", b.ledger.label(link), e.Free, e.Needed, who, second(e.At))
		return e
	}
	n.held += more
	if b.held[link] == nil {
		b.held[link] = map[string]unit.Rate{}
	}
	if b.held[link][who] = rate; rate == 0 {
		delete(b.held[link], who)
	}
	return nil
}

// Step is a moment from which a rate is reserved on a link, until the next step.
type Step struct {
	At       time.Time
	Reserved unit.Rate
}

// Calendar returns the rate that is reserved on a link over time, with what is held, and the rate that can be reserved.
// The first step is at from. It reports false for a link that is not in the network.
func (b *Book) Calendar(link fabric.LinkID, from, to time.Time) (steps []Step, limit unit.Rate, ok bool) {
	i, ok := b.ledger.index[link]
	if !ok {
		return nil, 0, false
	}
	n := b.ledger.lines[i]
	steps = []Step{{from, unit.Rate(n.held + n.level(moment(from)))}}
	n.each(func(at, rate int64) {
		if at > moment(from) && at < moment(to) {
			steps = append(steps, Step{clock(at), unit.Rate(n.held + rate)})
		}
	})
	return steps, unit.Rate(n.limit), true
}

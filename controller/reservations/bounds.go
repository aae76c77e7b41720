package reservations

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// maxOfTenant is how many reservations a tenant has at most, with those that ended within the grace. It is chosen for
// Headgate so that one tenant cannot fill the store and the book, which are measured with 10,000.
const maxOfTenant = 1000

func invalid(key, format string, args ...any) *reserve.Invalid {
	return &reserve.Invalid{Key: key, Problem: fmt.Sprintf(format, args...)}
}

// checkRequest refuses a tenant's request that no grant can bring within the bounds.
func (o *Owner) checkRequest(r reserve.Request, within *store.ReservationBounds) error {
	switch {
	case within == nil:
		return nil
	case within.RateBps == 0:
		return invalid("name", "tenant %s may not reserve bandwidth: the operator permits it with \"headgate tenant set %s --reserve-rate\"", r.Tenant, r.Tenant)
	case len(o.byTenant[r.Tenant]) >= maxOfTenant:
		return invalid("name", "tenant %s has %d reservations, as many as a tenant may have: cancel one first", r.Tenant, maxOfTenant)
	case r.Class >= 1 && r.Class < within.Class:
		return invalid("class", "class %d is above that of tenant %s: write %d to %d", r.Class, r.Tenant, within.Class, reserve.Classes)
	case r.Duration > time.Duration(within.Duration):
		return invalid("duration", "%v is longer than a reservation of tenant %s may last, which is %v: write a shorter one", r.Duration, r.Tenant, time.Duration(within.Duration))
	}
	return nil
}

// checkEnds refuses an end that the operator has not given to the tenant.
func checkEnds(r reserve.Request, within *store.ReservationBounds) error {
	if within == nil || len(within.Ends) == 0 {
		return nil
	}
	var errs []error
	for _, e := range []struct {
		key string
		reserve.Endpoint
	}{{"from", r.Source}, {"to", r.Destination}} {
		if !slices.ContainsFunc(within.Ends, func(given string) bool { return covers(given, e.Endpoint) }) {
			errs = append(errs, invalid(e.key, "%v is not an end that tenant %s may reserve: name one that the operator has given to the tenant", e.Endpoint, r.Tenant))
		}
	}
	return errors.Join(errs...)
}

// covers reports whether a text of the bounds is the name of an end, or a prefix that has its addresses.
func covers(given string, e reserve.Endpoint) bool {
	if given == e.Name {
		return true
	}
	p, err := netip.ParsePrefix(given)
	if err != nil {
		a, notAddr := netip.ParseAddr(given)
		if notAddr != nil {
			return false
		}
		p = netip.PrefixFrom(a, a.BitLen())
	}
	return e.Prefix.IsValid() && p.Bits() <= e.Prefix.Bits() && p.Contains(e.Prefix.Addr())
}

// checkGrant refuses what would be granted if it is out of the tenant's bounds: a volume has its rate and duration, and a
// window its start, only when it is granted.
func (o *Owner) checkGrant(r reserve.Reservation, within *store.ReservationBounds, now time.Time) error {
	if within == nil {
		return nil
	}
	tenant := r.Request.Tenant
	if d := r.End.Sub(r.Start); d > time.Duration(within.Duration) {
		return invalid("duration", "the reservation would last %v, and one of tenant %s may last %v: ask for less", d, tenant, time.Duration(within.Duration))
	}
	if latest := now.Add(time.Duration(within.Ahead)); r.Start.After(latest) {
		return invalid("start", "the reservation would begin at %s, and one of tenant %s may begin by %s: write an earlier start", stamp(r.Start), tenant, stamp(latest))
	}
	if most := unit.Rate(within.RateBps); o.peak(r) > most {
		return invalid("rate", "the reservations of tenant %s would have %v together, in both directions and with spare paths, of at most %v: ask for less, or cancel another one", tenant, o.peak(r), most)
	}
	return nil
}

// peak returns the highest sum of the rates of a tenant's reservations at a moment of one of them.
func (o *Owner) peak(r reserve.Reservation) unit.Rate {
	steps := []step{{r.Start, promised(r)}, {r.End, -promised(r)}}
	for id := range o.byTenant[r.Request.Tenant] {
		other, ok := o.book.Get(id)
		if !ok || id == r.Request.ID || !other.Start.Before(r.End) || !r.Start.Before(other.End) {
			continue
		}
		steps = append(steps, step{other.Start, promised(other)}, step{other.End, -promised(other)})
	}
	return unit.Rate(highest(steps))
}

// step is a moment from which the sum of rates is more by rate, or less.
type step struct {
	at   time.Time
	rate int64
}

// highest returns the highest sum of rates, at least 0.
func highest(steps []step) (most int64) {
	slices.SortFunc(steps, func(a, b step) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return int(max(-1, min(1, a.rate-b.rate))) // what ends is not counted with what begins
	})
	sum := int64(0)
	for _, s := range steps {
		sum += s.rate
		most = max(most, sum)
	}
	return most
}

// promised is the sum of the rates of a reservation: of both directions, and of its spare path.
func promised(r reserve.Reservation) int64 {
	forward, reverse := int64(r.Forward), int64(r.Reverse)
	sum := forward + reverse
	if r.Request.Protected {
		n := int64(max(r.Request.Paths, 1))
		sum += (forward+n-1)/n + (reverse+n-1)/n
	}
	return sum
}

// offersWithin removes the counter-offers of a refusal that are out of the bounds.
func offersWithin(err error, within *store.ReservationBounds, now time.Time) error {
	var refused *reserve.Refusal
	if within == nil || !errors.As(err, &refused) {
		return err
	}
	latest := now.Add(time.Duration(within.Ahead))
	if e := refused.Earliest; e != nil && e.Start.After(latest) {
		refused.Earliest = nil
	}
	// A window has its start at its end without the duration. That of a volume is not known.
	if w := refused.Window; w != nil && w.Until.Add(-w.Duration).After(latest) {
		refused.Window = nil
	}
	return err
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

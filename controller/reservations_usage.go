package controller

import (
	"maps"
	"slices"
	"strings"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/controller/circuits"
	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/metrics"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// reservationUsage returns what each direction of the reservations that have begun does. There is none if the network has no
// switches.
func (c *Controller) reservationUsage() []circuits.Usage {
	if loop := c.circuits.Load(); loop != nil {
		return loop.Usage()
	}
	return nil
}

// Usage implements server.Reservations.
func (v reservationsView) Usage() ([]api.ReservationUsage, error) {
	if _, err := v.owner(); err != nil {
		return nil, err
	}
	all := v.c.reservationUsage()
	problems := v.c.hub.reservationProblems()
	out := make([]api.ReservationUsage, len(all))
	for i, u := range all {
		out[i] = reservationUsageOf(u)
		if why := problemOf(problems, points.Key(u.Reservation, u.Reverse)); why != "" {
			out[i].Problem = &why
		}
	}
	return out, nil
}

// problemOf returns the problems of a direction at its point, and at routers after it, whose keys begin with that of the direction.
func problemOf(problems map[string]string, key string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(problems)) {
		if k == key || strings.HasPrefix(k, key+"/") {
			all = append(all, problems[k])
		}
	}
	return strings.Join(all, "; ")
}

// reservationUsageOf returns the API form of the usage of a direction.
func reservationUsageOf(u circuits.Usage) api.ReservationUsage {
	t := u.Total
	out := api.ReservationUsage{
		Owner: store.ReservationOwner(u.Reservation.Tenant), Name: u.Reservation.Name, Direction: api.ReservationForward, Class: u.Class, HeldBy: api.ReservationUsageHeldBy(u.Point.String()),
		ReservedBps: int64(u.Reserved), OfferedBps: int64(u.Offered), DeliveredBps: int64(u.Delivered), PeakBps: int64(u.Peak), Since: u.Since, Seconds: t.Seconds,
		OfferedBytes: int64(t.Offered), DeliveredBytes: int64(t.Delivered), ReservedBytes: int64(t.Guaranteed), BorrowedBytes: int64(t.Borrowed), LentBytes: int64(t.Lent),
		UnmetSeconds: t.Unmet, Unused: u.Unused(),
	}
	if u.Reverse {
		out.Direction = api.ReservationBack
	}
	if limit, ok := limitOf(u); ok {
		out.LimitBps = new(int64(limit))
	}
	if !u.Full.IsZero() {
		out.Full = &u.Full
	}
	return out
}

// limitOf returns the limit of a direction, if it has one.
func limitOf(u circuits.Usage) (limit unit.Rate, ok bool) {
	return u.Limit, u.Point != cycle.Nowhere && u.Limit < unit.MaxRate
}

// reservationMetrics returns the active reservations and what they do, nil on a controller that does not decide about them.
func (c *Controller) reservationMetrics() *metrics.Reservations {
	owner, err := reservationsView{c}.owner()
	if err != nil {
		return nil
	}
	out := &metrics.Reservations{Active: owner.Active()}
	for _, u := range c.reservationUsage() {
		one := metrics.ReservationUsage{
			ID: u.Reservation, Reverse: u.Reverse, Reserved: u.Reserved, Offered: u.Offered, Delivered: u.Delivered, Total: u.Total, Unused: u.Unused(),
		}
		if limit, ok := limitOf(u); ok {
			one.Limit = &limit
		}
		out.Usage = append(out.Usage, one)
	}
	return out
}

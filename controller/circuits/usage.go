package circuits

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/unit"
	"headgate.dev/headgate/usage"
)

// Values chosen for Headgate.
const (
	// kept is how long the usage of a reservation that has ended is kept: as long as the reservation is listed.
	kept = time.Hour
	// unusedAfter is how long a reservation must be measured before it counts as unused, and unusedPart the part of it, in
	// percent, that one in use has offered once. TCP behind a meter reaches 85 % of a reservation, so that the whole is too
	// much to ask for.
	unusedAfter = time.Hour
	unusedPart  = 50
)

// Usage is what one direction of a reservation does, with all its paths.
type Usage struct {
	Reservation reserve.ID
	Reverse     bool
	Class       int
	// Point is what limits the packets. Of several paths it is the weakest: Nowhere if nothing limits one of them.
	Point cycle.Kind
	// Reserved is what the paths have, Limit the highest rate now, and Offered and Delivered the rates of the latest
	// measurement.
	Reserved, Limit, Offered, Delivered unit.Rate
	// Peak is the highest offered rate between two readings.
	Peak unit.Rate
	// Since is when the account began, and Full the latest time at which all that is reserved was offered, zero if it never
	// was.
	Since, Full time.Time
	// Total is the account since then: Guaranteed is what was reserved. Drops and Marks are not counted.
	Total usage.Usage
	// Missing are the measurements that did not arrive.
	Missing int
}

// Unused reports whether the reservation has never used what it holds, as far as was measured.
func (u Usage) Unused() bool {
	return u.Total.Seconds >= unusedAfter.Seconds() && u.Reserved > 0 && float64(u.Peak)*100 < float64(u.Reserved)*unusedPart
}

// account is the sum of the minutes of a flow that have ended.
type account struct {
	status  cycle.Status
	sum     usage.Usage
	peak    unit.Rate
	missing int
	// gone is when the flow had ended, zero if it has not.
	gone time.Time
}

// usages are the accounts of the reserved flows of a cycle, which change alone changes. The methods of both may be called at the same time.
type usages struct {
	mu       sync.Mutex
	cycle    *cycle.Cycle
	accounts map[cycle.FlowID]*account
	now      []Usage // nil until it is asked for
}

// change changes the cycle, and accounts for it.
func (u *usages) change(do func(*cycle.Cycle) cycle.Changes) cycle.Changes {
	u.mu.Lock()
	defer u.mu.Unlock()
	ch := do(u.cycle)
	if ch.Replaced {
		u.take(ch.Ended)
		u.refresh()
	}
	for _, m := range ch.Minutes {
		if a := u.accounts[m.Flow]; a != nil {
			a.add(m)
		}
	}
	u.now = nil
	return ch
}

// take takes the state of flows.
func (u *usages) take(flows []cycle.Status) {
	for _, f := range flows {
		if f.Flow.BestEffort() || f.Spare {
			continue
		}
		a := u.accounts[f.Flow]
		if a == nil {
			a = &account{}
			u.accounts[f.Flow] = a
		}
		before := a.status
		a.status, a.gone = f, time.Time{}
		if !before.Began.IsZero() { // also if it had no path for a while, or another point limits it
			a.status.Began = before.Began
		}
		if f.Full.IsZero() {
			a.status.Full = before.Full
		}
	}
}

// refresh takes the flows as they are now.
func (u *usages) refresh() {
	at, _ := u.cycle.Now()
	flows := u.cycle.Flows()
	u.take(flows)
	present := make(map[cycle.FlowID]bool, len(flows))
	for _, f := range flows {
		present[f.Flow] = !f.Spare
	}
	for id, a := range u.accounts {
		switch {
		case present[id]:
		case a.gone.IsZero():
			a.gone = at
			a.status.Offered, a.status.Delivered = 0, 0
		case at.Sub(a.gone) > kept:
			delete(u.accounts, id)
		}
	}
}

func (a *account) add(m cycle.Minute) {
	a.sum.Add(m.Usage)
	a.peak = max(a.peak, m.Peak)
	a.missing += m.Missing
}

// list returns the usage of each direction, by tenant and name.
func (u *usages) list() []Usage {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.now != nil {
		return u.now
	}
	u.refresh()
	minutes := u.cycle.Minutes()
	running := make(map[cycle.FlowID][]cycle.Minute, len(minutes))
	for _, m := range minutes {
		running[m.Flow] = append(running[m.Flow], m)
	}
	paths := map[key][]account{}
	for id, a := range u.accounts {
		one := *a
		for _, m := range running[id] {
			one.add(m)
		}
		paths[keyOf(id)] = append(paths[keyOf(id)], one)
	}
	all := make([]Usage, 0, len(paths))
	for k, list := range paths {
		all = append(all, join(k, list))
	}
	slices.SortFunc(all, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Reservation.Tenant, b.Reservation.Tenant), cmp.Compare(a.Reservation.Name, b.Reservation.Name), order(a.Reverse, b.Reverse))
	})
	u.now = all
	return all
}

// order puts the forward direction first.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// join returns the usage of a direction with the accounts of its paths. They carry packets at the same time, so that seconds are the
// most of one path, and bytes those of all. Rates are those of the paths that it has now, or had last.
func join(k key, paths []account) Usage {
	out := Usage{Reservation: k.reservation, Reverse: k.reverse}
	over := !slices.ContainsFunc(paths, func(a account) bool { return a.gone.IsZero() })
	var last time.Time
	for _, a := range paths {
		if a.gone.After(last) {
			last = a.gone
		}
	}
	first := true
	for _, a := range paths {
		s := a.status
		seconds, unmet := max(out.Total.Seconds, a.sum.Seconds), max(out.Total.Unmet, a.sum.Unmet)
		out.Total.Add(a.sum)
		out.Total.Seconds, out.Total.Unmet = seconds, unmet
		out.Missing += a.missing
		if out.Since.IsZero() || s.Began.Before(out.Since) {
			out.Since = s.Began
		}
		if s.Full.After(out.Full) {
			out.Full = s.Full
		}
		if a.gone.IsZero() || over && a.gone.Equal(last) {
			out.Class = s.Class
			out.Reserved, out.Offered, out.Delivered = out.Reserved+s.Reserved, out.Offered+s.Offered, out.Delivered+s.Delivered
			out.Limit, out.Peak = min(out.Limit+s.Limit, unit.MaxRate), out.Peak+a.peak
			if first || s.Point.Kind == cycle.Nowhere {
				out.Point = s.Point.Kind
			}
			first = false
		}
	}
	return out
}

// Usage returns what the reservations that have begun do, by tenant and name, and also those that ended within the last hour. It may
// be called by any goroutine; the slice must not be modified.
func (l *Loop) Usage() []Usage { return l.usages.list() }

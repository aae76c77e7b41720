package reservations

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/fabric/reserve"
)

// change is a reserve.Change of which it is known whether it changes anything.
type change struct{ reserve.Change }

func (c change) nothing() bool {
	return c.Forward == nil && c.Reverse == nil && c.End.IsZero() && c.Avoid == nil && !c.Move
}

// changeTo returns the change that makes a granted reservation the one of another request with the same name. The rates,
// the duration and the links to avoid can change. A request without a start has the start of the reservation. The error
// joins a *reserve.Invalid for each field that cannot change.
func changeTo(was reserve.Reservation, r reserve.Request) (c change, err error) {
	var errs []error
	fixed := func(key string, same bool) {
		if !same {
			errs = append(errs, &reserve.Invalid{Key: key, Problem: fmt.Sprintf("%s of reservation %v cannot change: cancel the reservation, and create another one", key, r.ID)})
		}
	}
	q, r := was.Request.Asked(), r.Asked()
	fixed("from", sameEnd(q.Source, r.Source) && q.Source.At == r.Source.At)
	fixed("to", sameEnd(q.Destination, r.Destination) && q.Destination.At == r.Destination.At)
	fixed("flows", slices.Equal(q.Flows, r.Flows))
	fixed("carry", (q.Carried == nil) == (r.Carried == nil))
	fixed("class", q.Class == r.Class)
	fixed("volume", q.Volume == r.Volume)
	fixed("paths", max(q.Paths, 1) == max(r.Paths, 1))
	fixed("protected", q.Protected == r.Protected)
	fixed("on_demand", q.OnDemand == r.OnDemand)
	fixed("disjoint", q.Disjoint == r.Disjoint)
	fixed("start", r.Start.IsZero() || r.Start.Equal(q.Start) || r.Start.Equal(was.Start))
	fixed("until", r.Until.Equal(q.Until))
	if q.Volume == 0 {
		if r.Forward != q.Forward {
			c.Forward = &r.Forward
		}
		if r.Reverse != q.Reverse {
			c.Reverse = &r.Reverse
		}
		if r.Duration != q.Duration {
			c.End = was.Start.Add(r.Duration)
		}
		if window := q.Until; !c.End.IsZero() && !window.IsZero() && c.End.After(window) {
			errs = append(errs, &reserve.Invalid{Key: "duration", Problem: fmt.Sprintf("the reservation would end at %s, after its window, which ends at %s: write a shorter duration", c.End.Format(time.RFC3339), window.Format(time.RFC3339))})
		}
	}
	if !slices.Equal(q.Avoid, r.Avoid) {
		c.Avoid = append(r.Avoid[:0:0], r.Avoid...)
		if c.Avoid == nil {
			c.Avoid = q.Avoid[:0:0] // not nil: no link is avoided
		}
	}
	return c, errors.Join(errs...)
}

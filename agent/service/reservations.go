package service

import (
	"time"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/agent/reserved"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/usage"
)

// reservations passes the controllers' reservations to the agent's loop, and reports what their groups carried. The loop
// calls its methods.
type reservations struct {
	stored *remote.Reservations
	send   func(*agents.ReservationReport) bool

	fence *agents.Fence // of the list that the loop has read last
	// last has the counters of the report before, by device and path; at is when it was sent.
	last map[string]map[string]usage.Counters
	at   time.Time
}

// desired returns the reservations.
func (r *reservations) desired() (d reserved.Desired) {
	d, r.fence = r.stored.Desired()
	return d
}

// report sends what the reservations' groups carried since the last report, if the next one is due. A report that no
// controller takes is part of the next one.
func (r *reservations) report(at time.Time, states []shaper.State) {
	every := r.stored.Interval()
	if every == 0 {
		r.last = nil
		return
	}
	if at.Sub(r.at) < every*3/4 { // samples are aligned to the clock, and may come slightly early
		return
	}
	d, _ := r.stored.Desired()
	out, now := r.counters(at, states, d)
	if len(out.Reservations) > 0 && !r.send(out) {
		return
	}
	r.last, r.at = now, at
}

// counters returns the report, and the counters that the next one begins with.
func (r *reservations) counters(at time.Time, states []shaper.State, d reserved.Desired) (*agents.ReservationReport, map[string]map[string]usage.Counters) {
	out, now := &agents.ReservationReport{AtNs: at.UnixNano()}, map[string]map[string]usage.Counters{}
	for _, s := range states {
		on := d.On(s.Dev)
		if len(on) == 0 || s.Out == nil {
			continue
		}
		for _, direction := range s.Usage() {
			if direction.Name != "out" {
				continue
			}
			was := r.last[s.Dev]
			used := usage.Account(was, direction)
			now[s.Dev] = direction.Counters()
			for _, one := range on {
				path := reserved.Path(one.Key)
				for n, g := range direction.Groups {
					if before, known := was[path]; g.Path == path && known {
						out.Reservations = append(out.Reservations, countersOf(one.Key, before, g.Counters, used[n], s.Out.Groups[n]))
					}
				}
			}
		}
	}
	return out, now
}

func countersOf(key string, was, now usage.Counters, u usage.Usage, g shaper.GroupState) *agents.ReservationCounters {
	queued := now.QueuedFor
	if queued >= was.QueuedFor {
		queued -= was.QueuedFor
	}
	return &agents.ReservationCounters{
		Key: key, PeriodNs: int64(now.At.Sub(was.At)), OfferedBytes: u.Offered, DeliveredBytes: u.Delivered, Drops: u.Drops,
		QueuedNs: int64(min(queued, now.At.Sub(was.At))), LimitBps: uint64(g.Ceiling),
	}
}

package points

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/unit"
)

// Direction is one direction of an active reservation that an agent limits.
type Direction struct {
	Request reserve.Request
	// Reverse means from Destination to Source.
	Reverse bool
	// Where tells entries of a direction from each other: "" is the one that limits it, others guarantee its rate on its way.
	Where string
	// At is the interface that sends the packets to the first link of the path.
	At Interface
	// Line is the capacity of that link, 0 if it is not known: then the interface needs a configured limit.
	Line unit.Rate
	// Rate is what is reserved, and Limit the highest rate now.
	Rate, Limit unit.Rate
	// Granted orders the reservations of an interface: if they do not fit, the agent refuses those that were granted
	// last.
	Granted time.Time
}

// Key is the key of the direction in messages: acme/backup/forward, or -/backup/reverse for one of the operator.
// With Where, that follows.
func (d Direction) Key() string {
	key := Key(d.Request.ID, d.Reverse)
	if d.Where != "" {
		key += "/" + d.Where
	}
	return key
}

// Key is the key of a direction of a reservation in messages.
func Key(id reserve.ID, reverse bool) string {
	direction := "forward"
	if reverse {
		direction = "reverse"
	}
	return cmp.Or(id.Tenant, "-") + "/" + id.Name + "/" + direction
}

// Messages returns the complete message for each host that limits a direction. A host that limits none any more needs an
// empty message. The agents report at the interval.
func Messages(all []Direction, fence *agents.Fence, every time.Duration) map[string]*agents.Reservations {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Direction) int {
		return cmp.Or(a.Granted.Compare(b.Granted), cmp.Compare(a.Key(), b.Key()))
	})
	out := map[string]*agents.Reservations{}
	for _, d := range all {
		m := out[d.At.Host]
		if m == nil {
			m = &agents.Reservations{Fence: fence, LineBps: map[string]uint64{}, ReportIntervalNs: int64(every)}
			out[d.At.Host] = m
		}
		if d.Line > 0 {
			m.LineBps[d.At.Dev] = uint64(d.Line)
		}
		m.Reservations = append(m.Reservations, &agents.Reservation{
			Key: d.Key(), Dev: d.At.Dev, Direction: agents.Egress, Traffic: traffic(d.Request, d.Reverse),
			RateBps: uint64(d.Rate), LimitBps: uint64(d.Limit), Class: uint32(d.Request.Class),
		})
	}
	return out
}

// Limits returns the messages that change the limits that differ between two lists of directions with the same points, by
// host.
func Limits(before, now []Direction, fence *agents.Fence) map[string]*agents.ReservationLimits {
	was := map[string]unit.Rate{}
	for _, d := range before {
		was[d.Key()] = d.Limit
	}
	out := map[string]*agents.ReservationLimits{}
	for _, d := range now {
		if limit, ok := was[d.Key()]; ok && limit == d.Limit {
			continue
		}
		m := out[d.At.Host]
		if m == nil {
			m = &agents.ReservationLimits{Fence: fence, LimitBps: map[string]uint64{}}
			out[d.At.Host] = m
		}
		m.LimitBps[d.Key()] = uint64(d.Limit)
	}
	return out
}

// With returns a message with the limits that a later message changes, for an agent that connects after it.
func With(list *agents.Reservations, l *agents.ReservationLimits) *agents.Reservations {
	out := &agents.Reservations{Fence: list.Fence, LineBps: maps.Clone(list.LineBps), ReportIntervalNs: list.ReportIntervalNs}
	for _, r := range list.Reservations {
		now := &agents.Reservation{Key: r.Key, Dev: r.Dev, Direction: r.Direction, Traffic: r.Traffic, RateBps: r.RateBps, LimitBps: r.LimitBps, Class: r.Class}
		if limit, ok := l.LimitBps[r.Key]; ok {
			now.LimitBps = limit
		}
		out.Reservations = append(out.Reservations, now)
	}
	return out
}

// traffic returns what the packets of a direction have in common: one entry for each flow of the request.
func traffic(r reserve.Request, reverse bool) (out []*agents.Traffic) {
	from, to, flows := r.Direction(reverse)
	if len(flows) == 0 {
		flows = []reserve.Flow{{}}
	}
	for _, f := range flows {
		// Packets have the tag of the end at which they enter the network.
		t := &agents.Traffic{Protocol: uint32(f.Protocol), Vlan: uint32(from.VLAN), SourcePorts: ports(f.Source), DestinationPorts: ports(f.Destination)}
		if from.Prefix.IsValid() {
			t.Source = from.Prefix.String()
		}
		if to.Prefix.IsValid() {
			t.Destination = to.Prefix.String()
		}
		out = append(out, t)
	}
	return out
}

// ports returns a range for a message, nil for any port.
func ports(p reserve.Ports) *agents.PortRange {
	if p == (reserve.Ports{}) {
		return nil
	}
	return &agents.PortRange{First: uint32(p.First), Last: uint32(p.Last)}
}

package reservations

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// Interface is an interface of a host with an agent, at a port of the network, and its configuration: the guarantees of its groups, and
// reservations that begin or end there, share its limit.
type Interface struct {
	// Host and Dev are the name of the document; Dev can be a pattern.
	Host, Dev string
	// Out is what the host sends, In what it receives.
	Out, In Guarantees
}

// Guarantees are those of a direction: the limit of the interface, 0 without one, and the total of the guarantees of its groups.
type Guarantees struct{ Limit, Total unit.Rate }

// Interfaces returns the interfaces of hosts with agents by their port.
type Interfaces func(*fabric.Topology) map[fabric.PortID]Interface

// groupsClaim is the claimant of the guarantees of groups in the book.
const groupsClaim = "the groups of its interface"

// shared is what groups and reservations know of each other.
type shared struct {
	interfaces Interfaces
	ports      map[fabric.PortID]Interface
	// held is what groups hold in the book, and refused what it did not accept.
	held, refused map[fabric.LinkID]unit.Rate
	// written is what the store has of reservations by the key of its document; nil is not known.
	written map[string]store.Reserved
	// version is that of the book, and when the time at which it was last compared with the store.
	version  uint64
	when     time.Time
	compared map[fabric.PortID]Interface
}

// CountGroups makes groups and reservations count each other from the next Follow on. It must be called before Run.
func (o *Owner) CountGroups(all Interfaces) { o.shared.interfaces = all }

// holdGroups enters the guarantees of groups into the book. mu must be held.
func (o *Owner) holdGroups(now time.Time) {
	s := &o.shared
	if s.interfaces == nil {
		return
	}
	s.ports = s.interfaces(o.top)
	want := map[fabric.LinkID]unit.Rate{}
	for at, i := range s.ports {
		for link, g := range map[fabric.LinkID]Guarantees{reserve.Uplink(at): i.Out, reserve.Downlink(at): i.In} {
			rate := g.Total
			if _, line, ok := o.book.Calendar(link, now, now); ok && g.Limit > 0 && g.Limit < line && line <= unit.MaxRate {
				rate += line - g.Limit // the interface is slower than the line
			}
			if rate > 0 {
				want[link] = rate
			}
		}
	}
	for link := range s.held {
		if _, ok := want[link]; !ok {
			want[link] = 0
		}
	}
	refused := map[fabric.LinkID]unit.Rate{}
	for link, rate := range want {
		if s.held[link] == rate {
			continue
		}
		if err := o.book.Hold(link, rate, groupsClaim, now); err != nil {
			if s.refused[link] != rate {
				slog.Warn("groups and reservations together have more than an interface", "error", err)
			}
			refused[link] = rate
			continue
		}
		if s.held[link] = rate; rate == 0 {
			delete(s.held, link)
		}
	}
	s.refused = refused
}

// reservedAt returns the most that the reservations of the book have of an interface, from now on, with one in place of that of its name. mu
// must be held for reading.
func (o *Owner) reservedAt(at fabric.PortID, now time.Time, with *reserve.Reservation, without reserve.ID) (r store.Reserved) {
	var all []reserve.Reservation
	for id := range o.byPort[at] {
		if one, ok := o.book.Get(id); ok && id != without {
			all = append(all, one)
		}
	}
	if with != nil {
		all = append(all, *with)
	}
	var out, in []step
	until := int64(0)
	for _, one := range all {
		if !now.Before(one.End) {
			continue
		}
		forward, reverse := one.Rates()
		sends, receives := int64(0), int64(0)
		if one.Request.Source.At == at {
			sends, receives = sends+int64(forward), receives+int64(reverse)
		}
		if one.Request.Destination.At == at {
			sends, receives = sends+int64(reverse), receives+int64(forward)
		}
		if sends+receives > 0 {
			until = max(until, one.End.Unix()+1)
			out = append(out, step{one.Start, sends}, step{one.End, -sends})
			in = append(in, step{one.Start, receives}, step{one.End, -receives})
		}
	}
	return store.Reserved{OutBps: uint64(highest(out)), InBps: uint64(highest(in)), Until: until}
}

// share writes what reservations have of the interfaces at the ends of one that is granted, or cancelled if granted is nil, in the transaction of
// the decision. It refuses one that groups have left no room for since the book was told.
func (d *Decision) share(ends []fabric.PortID, granted *reserve.Reservation, id reserve.ID) error {
	s := &d.owner.shared
	for _, at := range ends {
		i, ok := s.ports[at]
		if !ok {
			continue
		}
		key := store.ReservedKey(i.Host, i.Dev)
		reserved := d.owner.reservedAt(at, d.now, granted, id)
		var now store.Interface
		if _, there, err := d.Tx.Get(store.Key(store.Interfaces, i.Host, i.Dev), &now); err != nil {
			return err
		} else if there && granted != nil {
			for _, direction := range []string{"out", "in"} {
				was, _ := now.Excess(direction, s.written[key], d.now)
				if more, _ := now.Excess(direction, reserved, d.now); more > was {
					return invalid("rate", "the groups of %s on host %s were just given %v of what this needs: ask again", i.Dev, i.Host, more)
				}
			}
		}
		if reserved == s.written[key] {
			continue
		}
		if err := d.Tx.Put(key, reserved); err != nil {
			return err
		}
		enter := d.enter
		d.enter = func() {
			enter()
			if s.written != nil {
				s.written[key] = reserved
			}
		}
	}
	return nil
}

// writeReserved makes what the store has of reservations right where it is not: reservations have ended or were moved, and agents have come.
// deciding must be held.
func (o *Owner) writeReserved(ctx context.Context, now time.Time) error {
	s := &o.shared
	if s.interfaces == nil {
		return nil
	}
	if s.written == nil {
		docs, _, err := o.term.Store().All(ctx, store.Prefix(store.ReservedOf), 0)
		if err != nil {
			return err
		}
		written := map[string]store.Reserved{}
		for _, d := range docs {
			var r store.Reserved
			if err := d.Into(&r); err != nil {
				return err
			}
			written[d.Key] = r
		}
		s.written = written
	}
	if s.version == o.version && now.Sub(s.when) < expireInterval && maps.Equal(s.ports, s.compared) {
		return nil
	}
	version := o.version
	want, here := map[string]store.Reserved{}, map[string]bool{}
	for at, i := range s.ports {
		key := store.ReservedKey(i.Host, i.Dev)
		here[key] = true
		if r := o.reservedAt(at, now, nil, reserve.ID{}); r != (store.Reserved{}) {
			want[key] = r
		}
	}
	var keys []string
	for key, r := range want {
		if s.written[key] != r {
			keys = append(keys, key)
		}
	}
	for key := range s.written {
		// The agent of a host whose interface is not known now may come back: what is reserved there stays until it is.
		if _, ok := want[key]; !ok && (here[key] || len(o.byTenant) == 0) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for some := range slices.Chunk(keys, batch) {
		err := o.write(ctx, func(tx *store.Tx) error {
			var errs []error
			for _, key := range some {
				if r, ok := want[key]; ok {
					errs = append(errs, tx.Put(key, r))
				} else {
					tx.Delete(key)
				}
			}
			return errors.Join(errs...)
		})
		if err != nil {
			return err
		}
		for _, key := range some {
			if r, ok := want[key]; ok {
				s.written[key] = r
			} else {
				delete(s.written, key)
			}
		}
	}
	s.version, s.when, s.compared = version, now, s.ports
	return nil
}

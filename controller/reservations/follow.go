package reservations

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/store"
)

// Values chosen for Headgate.
const (
	// grace is for how long a reservation is kept after its end, so that its owner can extend it. A clock that is an hour
	// ahead removes no reservation that has not ended.
	grace = time.Hour
	// expireInterval is the interval at which ended reservations are looked for.
	expireInterval = time.Minute
	// followInterval is the interval at which the network is compared with that of the book, beside each change of it.
	followInterval = time.Second
	// repairInterval is the interval at which degraded reservations are planned again although nothing was released:
	// what is reserved by others may have ended. A plan of 10,000 reservations takes some 100 ms, in which no other change
	// is decided.
	repairInterval = 30 * time.Second
	// gather is how long further changes of the network are waited for: a dead switch takes several links with it.
	gather = 10 * time.Millisecond
	// firstTopology is how long the links of stored reservations are waited for at the beginning of a term. Switches that
	// are connected to this controller already are led within a second; one that lost its controller connects again
	// within a few seconds.
	firstTopology = 5 * time.Second
	// topologyInterval is the interval at which they are looked for.
	topologyInterval = 50 * time.Millisecond
	// batch is how many documents one transaction writes, each with an entry of the audit log: an external etcd accepts
	// 128 operations by default.
	batch = 50
)

// Run follows the network and removes ended reservations until ctx ends. changed has a value when the network may have
// changed.
func (o *Owner) Run(ctx context.Context, changed <-chan struct{}) {
	follow, expire := time.NewTicker(followInterval), time.NewTicker(expireInterval)
	defer follow.Stop()
	defer expire.Stop()
	report := func(task string, err error) {
		if err != nil && ctx.Err() == nil {
			slog.Warn("cannot "+task+", trying again", "error", err)
		}
	}
	for {
		began := time.Now()
		report("plan reservations for the network", o.Follow(ctx))
		paused := time.Now().Add(3 * time.Since(began)) // to follow takes at most a quarter of the time, however often the network changes
		select {
		case <-ctx.Done():
			return
		case <-expire.C:
			report("remove ended reservations", o.Expire(ctx))
		case <-follow.C:
		case <-changed:
			select {
			case <-ctx.Done():
				return
			case <-time.After(max(gather, time.Until(paused))):
			}
		}
	}
}

// Follow compares the network with that of the book. If it has other links or ports, or if a reservation is degraded and
// bandwidth was released, it plans all reservations that lack paths or bandwidth together, stores what changes, and
// enters it.
func (o *Owner) Follow(ctx context.Context) error {
	top, err := o.network()
	if err != nil {
		return err
	}
	o.deciding.Lock()
	defer o.deciding.Unlock()
	repair := len(o.degraded) > 0 && (o.freed || time.Since(o.planned) >= repairInterval)
	if sameLinks(o.top, top) && !o.planned.IsZero() && !o.stale && !repair {
		o.mu.Lock()
		if !sameNodes(o.top, top) {
			o.top = top
		}
		o.holdGroups(o.now())
		o.mu.Unlock()
		return o.writeReserved(ctx, o.now())
	}
	if err := o.refresh(ctx); err != nil {
		return err
	}
	now := o.now()
	next := o.book.Clone()
	changed := next.Reroute(top, now)
	for some := range slices.Chunk(changed, batch) {
		err := o.write(ctx, func(tx *store.Tx) error {
			for _, one := range some {
				r := one.After
				if err := tx.Put(store.ReservationKey(r.Request.ID), documentOf(r, o.changedAt(r.Request.ID, now))); err != nil {
					return err
				}
				if err := record(tx, now, r.Request.ID, "reroute: "+reasonOf(one)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			o.stale = true // a part may be stored
			return err
		}
	}
	for _, one := range changed {
		slog.Info("reservation was rerouted", "reservation", one.After.Request.ID, "result", reasonOf(one))
	}
	o.mu.Lock()
	o.book, o.top = next, top
	for _, one := range changed {
		o.set(one.After, o.changedAt(one.After.Request.ID, now))
	}
	o.mu.Unlock()
	o.planned, o.freed = time.Now(), false
	if len(changed) > 0 {
		o.announce()
	}
	return nil
}

// reasonOf says what Reroute did to a reservation.
func reasonOf(r reserve.Rerouted) string {
	switch {
	case r.After.Degraded != "":
		return "degraded, because " + r.After.Degraded
	case r.Before.Degraded != "":
		return "repaired"
	}
	return "moved to other paths"
}

// sameLinks reports whether two networks have the same switches, ports and links, whatever their hosts are.
func sameLinks(a, b *fabric.Topology) bool {
	return slices.Equal(a.Links(), b.Links()) && slices.EqualFunc(a.Switches(), b.Switches(), func(s, t fabric.Switch) bool {
		return s.ID == t.ID && s.Name == t.Name && slices.Equal(s.Ports, t.Ports)
	})
}

// sameNodes reports whether two networks with the same links have hosts with the same addresses at the same ports, and switches that can do the same.
func sameNodes(a, b *fabric.Topology) bool {
	return slices.EqualFunc(a.Switches(), b.Switches(), func(s, t fabric.Switch) bool {
		return s.Agent == t.Agent && s.Capabilities == t.Capabilities
	}) && slices.EqualFunc(a.Hosts(), b.Hosts(), func(g, h fabric.Host) bool {
		return g.HostID == h.HostID && g.Name == h.Name && g.At == h.At && slices.Equal(g.Addrs, h.Addrs)
	})
}

// Expire removes the reservations that ended before the grace.
func (o *Owner) Expire(ctx context.Context) error {
	o.deciding.Lock()
	defer o.deciding.Unlock()
	if err := o.refresh(ctx); err != nil {
		return err
	}
	now := o.now()
	ended := slices.DeleteFunc(o.book.All(), func(r reserve.Reservation) bool { return now.Before(r.End.Add(grace)) })
	for some := range slices.Chunk(ended, batch) {
		err := o.write(ctx, func(tx *store.Tx) error {
			for _, r := range some {
				tx.Delete(store.ReservationKey(r.Request.ID))
				if err := record(tx, now, r.Request.ID, "expire: ended at "+stamp(r.End)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		o.mu.Lock()
		for _, r := range some {
			o.remove(r.Request.ID)
		}
		o.mu.Unlock()
	}
	if len(ended) > 0 {
		o.freed = true
		o.announce()
	}
	return nil
}

// record writes an audit entry of what the leader did to a reservation by itself.
func record(tx *store.Tx, now time.Time, id reserve.ID, what string) error {
	entry := fmt.Sprintf("%016x-%s", now.UnixNano(), rand.Text()[:8])
	resource := store.Reservations + "/" + store.ReservationOwner(id.Tenant) + "/" + id.Name
	return tx.Put(store.Key(store.Audit, entry), store.AuditEntry{
		ID: entry, At: now.UTC(), By: "controller", Role: store.Operator, Tenant: id.Tenant, Change: resource + ": " + what, Resource: resource, Status: 200,
	})
}

// await returns the network when it has all links and ports of reservations that have not ended, or after firstTopology.
func await(ctx context.Context, network Network, docs []store.Reservation, now time.Time) (*fabric.Topology, error) {
	for began := time.Now(); ; {
		top, err := network()
		if err == nil && (complete(top, docs, now) || time.Since(began) > firstTopology) {
			return top, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(topologyInterval):
		}
	}
}

// complete reports whether a network has all links and ports of reservations that have not ended.
func complete(top *fabric.Topology, docs []store.Reservation, now time.Time) bool {
	for _, d := range docs {
		if !now.Before(d.End) {
			continue
		}
		ends := []store.NetworkPort{d.Request.From.At, d.Request.To.At}
		if c := d.Request.Carried; c != nil {
			ends = []store.NetworkPort{c.From.At, c.To.At}
		}
		for _, at := range ends {
			if _, ok := top.Port(at.ID()); !ok {
				return false
			}
		}
		for _, p := range d.Paths {
			for _, l := range p.Links {
				if !top.Usable(l.ID()) || p.BackBps > 0 && !top.Usable(l.ID().Reverse()) {
					return false
				}
			}
		}
	}
	return true
}

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/api/server"
	"headgate.dev/headgate/controller/circuits"
	"headgate.dev/headgate/controller/reservations"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/reserve"
	"headgate.dev/headgate/fabric/reserve/cycle"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// reservationsRetry is after what time the book of reservations is built again if that fails, chosen for Headgate.
const reservationsRetry = time.Second

// leadReservations is the leader's task that owns the reservations.
func (c *Controller) leadReservations(ctx context.Context, t store.Term) {
	// A time of day that is stepped by an hour must not end what was granted, as it does not end it in the cycle.
	clock := cycle.NewClock(time.Now)
	for {
		o, err := reservations.Open(ctx, t, c.topology, clock.Now)
		if err == nil {
			o.CountGroups(c.interfacesAt)
			o.CarryBy(c.relayPair)
			o.NameBy(c.hub.macs)
			c.reservations.Store(o)
			var loop sync.WaitGroup
			loop.Go(func() { c.enforceReservations(ctx, t, o) })
			loop.Go(func() { c.redirectReservations(ctx, o) })
			o.Run(ctx, c.networkChanged)
			loop.Wait()
			c.hub.forgetReservations()
			c.reservations.Store(nil)
			return
		}
		if ctx.Err() == nil {
			slog.Error("reservations have no owner, trying again", "error", err)
		}
		if !sleep.Until(ctx, time.Now().Add(reservationsRetry)) {
			return
		}
	}
}

// interfacesAt returns the interfaces of hosts with agents at the ports of a network, with the guarantees of their groups.
func (c *Controller) interfacesAt(top *fabric.Topology) map[fabric.PortID]reservations.Interface {
	out := map[fabric.PortID]reservations.Interface{}
	for at, i := range circuits.HostsAt(top, c.hub.Interfaces()) {
		out[at] = c.cache.guarantees(i.Host, i.Dev)
	}
	return out
}

// enforceReservations gives switches and agents what they should have until ctx ends.
func (c *Controller) enforceReservations(ctx context.Context, t store.Term, o *reservations.Owner) {
	term, ok := generationOf(ctx, t)
	if !ok {
		return
	}
	var switches circuits.Switches
	if n := c.switches.Live(); n != nil {
		switches = n
	}
	scheme, err := cycle.SchemeNamed(cmp.Or(c.config.Scheme, cycle.DefaultScheme), c.config.Cycle)
	if err != nil { // New has checked it
		panic(err)
	}
	l := circuits.New(switches, c.hub, o, circuits.Options{Scheme: scheme, Term: term, Interval: c.config.Cycle, Now: time.Now})
	c.circuits.Store(l)
	defer c.circuits.Store(nil)
	l.Run(ctx)
}

var errNoTerm = errors.New("this controller does not lead the switches yet")

// topology returns the network as it is now.
func (c *Controller) topology() (*fabric.Topology, error) {
	n := c.switches.Live()
	if n == nil {
		return nil, errNoTerm
	}
	top, err := n.Topology()
	if err != nil {
		return nil, err
	}
	c.cache.mu.Lock()
	written := c.cache.configured()
	c.cache.mu.Unlock()
	if written == nil || len(written.Routers) == 0 {
		return top, nil
	}
	return fabric.New(written.WithRouters(fabric.Parts{Sites: top.Sites(), Switches: top.Switches(), Links: top.Links(), Hosts: top.Hosts()}))
}

// reservationsView implements server.Reservations.
type reservationsView struct{ c *Controller }

var errNoOwner = &server.Refusal{Status: http.StatusServiceUnavailable, Detail: "no controller decides about reservations at this moment: retry", RetryAfter: 2}

func (v reservationsView) owner() (*reservations.Owner, error) {
	o := v.c.reservations.Load()
	if o == nil || !v.c.isLeader() {
		return nil, errNoOwner
	}
	return o, nil
}

// Do implements server.Reservations.
func (v reservationsView) Do(ctx context.Context, decide func(*store.Tx, server.ReservationDecision) error) error {
	o, err := v.owner()
	if err != nil {
		return err
	}
	err = o.Do(ctx, func(d *reservations.Decision) error { return decide(d.Tx, d) })
	if errors.Is(err, store.ErrNotLeader) {
		return errNoOwner
	}
	return err
}

// WhatIf implements server.Reservations.
func (v reservationsView) WhatIf(r reserve.Request, within *store.ReservationBounds) (store.Reservation, error) {
	o, err := v.owner()
	if err != nil {
		return store.Reservation{}, err
	}
	return o.WhatIf(r, within)
}

// Calendar implements server.Reservations.
func (v reservationsView) Calendar(link string, arriving bool, from, to time.Time) ([]reserve.Step, unit.Rate, error) {
	o, err := v.owner()
	if err != nil {
		return nil, 0, err
	}
	id, err := linkAt(o.Topology(), link, arriving)
	if err != nil {
		return nil, 0, err
	}
	steps, limit, ok := o.Calendar(id, from, to)
	if !ok {
		return nil, 0, noLink(link)
	}
	return steps, limit, nil
}

func noLink(text string) error {
	return &server.Refusal{Status: http.StatusNotFound, Detail: fmt.Sprintf("the network has no port %s: write a datapath id or the name of a switch, a slash and the number of a port", text)}
}

// linkAt returns the link at a port, of which the text is s1/3: the one that leaves, or the one that arrives.
func linkAt(top *fabric.Topology, text string, arriving bool) (fabric.LinkID, error) {
	i := strings.LastIndexByte(text, '/')
	if i < 0 {
		return fabric.LinkID{}, noLink(text)
	}
	sw, found := top.SwitchNamed(text[:i])
	if id, err := fabric.ParseDPID(text[:i]); err == nil {
		sw, found = top.Switch(id)
	}
	no, err := strconv.ParseUint(text[i+1:], 10, 32)
	at := fabric.PortID{Switch: sw.ID, Port: fabric.PortNo(no)}
	if _, exists := top.Port(at); !found || err != nil || !exists {
		return fabric.LinkID{}, noLink(text)
	}
	l, ok := top.LinkFrom(at)
	switch {
	case ok && arriving:
		return l.Reverse(), nil
	case ok:
		return l.LinkID, nil
	case arriving:
		return reserve.Uplink(at), nil
	}
	return reserve.Downlink(at), nil
}

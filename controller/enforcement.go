package controller

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/controller/points"
	"headgate.dev/headgate/fabric"
)

// SetReservations sets the complete reservations of a host and sends them to its agent, now if it is connected to this
// controller, and whenever it connects. It returns false if the agent does not have them now: it is not connected here, is of
// a version that enforces none, or does not take messages fast enough.
func (h *hub) SetReservations(host string, list *agents.Reservations) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reserved == nil {
		h.reserved = map[string]*agents.Reservations{}
	}
	h.reserved[host] = list
	return h.links[host].sendReservations(list)
}

// SetLimits changes limits of a host's reservations. It returns false if the agent does not have them now, as
// setReservations, which then repeats them.
func (h *hub) SetLimits(host string, l *agents.ReservationLimits) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := h.reserved[host]
	if list == nil {
		return false
	}
	h.reserved[host] = points.With(list, l)
	link := h.links[host]
	return link != nil && link.hello.Reservations && link.trySend(agents.To(l))
}

// sendReservations sends a list to the agent of a stream, which may be nil.
func (l *link) sendReservations(list *agents.Reservations) bool {
	return l != nil && list != nil && l.hello.Reservations && l.trySend(agents.To(list))
}

// reservationProblems returns why agents do not enforce directions of reservations, by their key, with the name of the host.
func (h *hub) reservationProblems() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[string]string{}
	for _, host := range slices.Sorted(maps.Keys(h.links)) {
		l := h.links[host]
		l.mu.Lock()
		for key, why := range l.reserved.GetErrors() {
			out[key] = "host " + host + ": " + why
		}
		l.mu.Unlock()
	}
	return out
}

// Interfaces returns the interfaces of the hosts whose agents are connected to this controller and enforce reservations,
// by MAC address.
func (h *hub) Interfaces() map[fabric.MAC]points.Interface {
	h.mu.Lock()
	defer h.mu.Unlock()
	facts := map[string]*agents.Facts{}
	for host, l := range h.links {
		l.mu.Lock()
		if l.hello.Reservations {
			facts[host] = l.facts
		}
		l.mu.Unlock()
	}
	return points.ByMAC(facts)
}

// macs returns the MAC addresses of the interfaces of a host whose agent is connected to this controller, without those that another one has as well, and the
// address from which it is connected.
func (h *hub) macs(host string) (all []fabric.MAC, from netip.Addr) {
	for mac, i := range h.Interfaces() {
		if i.Host == host {
			all = append(all, mac)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.links[host]; l != nil {
		from, _ = netip.ParseAddr(l.address)
	}
	return all, from.Unmap()
}

// Measured returns what the agents measured since the last call, by the key of a direction.
func (h *hub) Measured(last time.Duration) map[string]points.Measured { return h.measured.Take(last) }

// forgetReservations ends the lists of a term: agents that connect later get none of them, and keep the one that they have.
func (h *hub) forgetReservations() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reserved = nil
}

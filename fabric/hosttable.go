package fabric

import (
	"net/netip"
	"slices"
	"time"
)

// hostTable is hosts by their identities, addresses and ports, and the list of them. Each change of what is listed is one of its methods.
type hostTable struct {
	hosts map[HostID]*station
	addrs map[vlanAddr]HostID
	at    map[PortID]map[HostID]bool
	list  []Host // nil after a change
}

// station is a host with the times at which it was observed.
type station struct {
	Host
	seen  time.Time
	addrs map[netip.Addr]time.Time
	// fixed reports that the addresses are configured: there are no others, and they do not expire.
	fixed bool
	// candidate is the port at which the host was last observed if that is not its port, zero if there is none.
	candidate PortID
	since     time.Time
}

func newHostTable() hostTable {
	return hostTable{hosts: map[HostID]*station{}, addrs: map[vlanAddr]HostID{}, at: map[PortID]map[HostID]bool{}}
}

// all returns all hosts, in the order of their identities.
func (t *hostTable) all() []Host {
	if t.list == nil {
		t.list = make([]Host, 0, len(t.hosts))
		for _, s := range t.hosts {
			t.list = append(t.list, s.host())
		}
		slices.SortFunc(t.list, func(a, b Host) int { return a.HostID.Compare(b.HostID) })
	}
	return t.list
}

func (s *station) host() Host {
	h := s.Host
	h.Addrs = nil
	for a := range s.addrs {
		h.Addrs = append(h.Addrs, a)
	}
	slices.SortFunc(h.Addrs, netip.Addr.Compare)
	return h
}

// put adds a host at a port, or moves it there.
func (t *hostTable) put(h *station, p PortID) {
	t.leave(h)
	h.At, t.hosts[h.HostID], t.list = p, h, nil
	if t.at[p] == nil {
		t.at[p] = map[HostID]bool{}
	}
	t.at[p][h.HostID] = true
}

// leave takes a host from its port.
func (t *hostTable) leave(h *station) {
	delete(t.at[h.At], h.HostID)
	if len(t.at[h.At]) == 0 {
		delete(t.at, h.At)
	}
}

// drop removes a host with its addresses.
func (t *hostTable) drop(h *station) {
	t.leave(h)
	for a := range h.addrs {
		delete(t.addrs, vlanAddr{h.VLAN, a})
	}
	delete(t.hosts, h.HostID)
	t.list = nil
}

// owner returns the host that has an address.
func (t *hostTable) owner(vlan uint16, a netip.Addr) (*station, bool) {
	id, ok := t.addrs[vlanAddr{vlan, a}]
	return t.hosts[id], ok
}

// give gives a host an address that no other has.
func (t *hostTable) give(h *station, a netip.Addr, now time.Time) {
	h.addrs[a], t.addrs[vlanAddr{h.VLAN, a}], t.list = now, h.HostID, nil
}

// take takes an address from a host.
func (t *hostTable) take(h *station, a netip.Addr) {
	delete(h.addrs, a)
	delete(t.addrs, vlanAddr{h.VLAN, a})
	t.list = nil
}

// describe replaces the name of a host, and how it was learned.
func (t *hostTable) describe(h *station, name string, by Learned) {
	h.Name, h.Learned, t.list = name, by, nil
}

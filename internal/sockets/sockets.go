// Package sockets finds the sockets of connections in this network namespace, by sock_diag(7).
package sockets

import (
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// TCP is the TCP sockets of a network namespace, and its addresses.
type TCP struct {
	own  map[netip.Addr]bool
	open map[[2]netip.AddrPort]bool // from the own end to the other one
}

// ListTCP lists the TCP sockets of this network namespace.
func ListTCP() (*TCP, error) {
	t := &TCP{own: map[netip.Addr]bool{}, open: map[[2]netip.AddrPort]bool{}}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok {
			t.own[addrOf(n.IP)] = true
		}
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		all, err := netlink.SocketDiagTCP(family)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			// An IPv6 socket may have a connection of IPv4.
			t.open[[2]netip.AddrPort{
				netip.AddrPortFrom(addrOf(s.ID.Source), s.ID.SourcePort),
				netip.AddrPortFrom(addrOf(s.ID.Destination), s.ID.DestinationPort),
			}] = true
		}
	}
	return t, nil
}

func addrOf(ip net.IP) netip.Addr {
	a, _ := netip.AddrFromSlice(ip)
	return a.Unmap()
}

// IsMissing reports whether a connection has an end in this namespace, and no socket here. It is false for a connection between other
// hosts, which this host may forward.
func (t *TCP) IsMissing(a, b netip.AddrPort) bool {
	return (t.own[a.Addr()] || t.own[b.Addr()]) && !t.open[[2]netip.AddrPort{a, b}] && !t.open[[2]netip.AddrPort{b, a}]
}

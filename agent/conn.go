package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	vnl "github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"headgate/group"
	"headgate/internal/ask"
	"headgate/shaper"
)

// connOf reads a connection's ends from its descriptor, and believes nobody else.
func connOf(fd int) (c shaper.Conn, err error) {
	if fd < 0 {
		return c, errors.New("no connection came with the request: pass its descriptor beside it (SCM_RIGHTS)")
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return c, errors.New("the descriptor is no socket: pass that of a connection")
	}
	proto, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	switch {
	case err != nil:
		return c, err
	case proto == unix.IPPROTO_MPTCP:
		return c, errors.New("the descriptor is of a Multipath TCP connection, which is several on the network: switch that off (in Go, SetMultipathTCP(false))")
	case domain != unix.AF_INET && domain != unix.AF_INET6 || proto != unix.IPPROTO_TCP && proto != unix.IPPROTO_UDP:
		return c, errors.New("the descriptor is of no TCP or UDP over IPv4 or IPv6: pass that of such a connection")
	}
	c.Proto = group.TCP
	if proto == unix.IPPROTO_UDP {
		c.Proto = group.UDP
	}
	if c.A, err = end(fd, unix.Getsockname); err != nil {
		return c, fmt.Errorf("the connection's own address cannot be read: %w", err)
	}
	if c.B, err = end(fd, unix.Getpeername); err != nil {
		return c, fmt.Errorf("the socket is not connected (%w): pass it when it is", err)
	}
	return c, nil
}

func end(fd int, name func(int) (unix.Sockaddr, error)) (netip.AddrPort, error) {
	sa, err := name(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port)), nil
	case *unix.SockaddrInet6: // IPv4 is sent as such
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, errors.New("it is of another family")
}

// genuine refuses a connection whose ends a user may have made up: in a network namespace that the
// user has made, where any address can be had, or by a socket bound to an address that its namespace
// does not have (IP_FREEBIND). One that root has made, a container's, has the addresses that root gave.
func genuine(fd int, c shaper.Conn) error {
	ns, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("the connection's network namespace cannot be told: %w", err)
	}
	defer unix.Close(ns)
	ours, err := sameAs(ns, "/proc/thread-self/ns/net")
	switch {
	case err != nil:
		return err
	case ours:
		return ofNamespace(ns, c.A.Addr())
	}
	owner, err := unix.IoctlRetInt(ns, unix.NS_GET_USERNS)
	if err == nil {
		defer unix.Close(owner)
		if ours, err = sameAs(owner, "/proc/thread-self/ns/user"); ours {
			return ofNamespace(ns, c.A.Addr())
		}
	}
	if err != nil && !errors.Is(err, unix.EPERM) { // another's, of which we may not even know
		return fmt.Errorf("whose the connection's network namespace is cannot be told: %w", err)
	}
	return ask.Denied("the connection is in a network namespace that root has not made, whose addresses prove nothing: root may pass it")
}

// sameAs tells whether a descriptor is of the namespace at a path.
func sameAs(fd int, path string) (bool, error) {
	var a, b unix.Stat_t
	if err := unix.Fstat(fd, &a); err != nil {
		return false, err
	}
	if err := unix.Stat(path, &b); err != nil {
		return false, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return a.Dev == b.Dev && a.Ino == b.Ino, nil
}

// ofNamespace refuses an address that a network namespace does not have.
func ofNamespace(ns int, a netip.Addr) error {
	in, err := vnl.NewHandleAt(netns.NsHandle(ns), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("the addresses of the connection's network namespace cannot be told: %w", err)
	}
	defer in.Close()
	// An error is that the kernel knows no way there.
	routes, err := in.RouteGet(net.IP(a.AsSlice()))
	if err != nil || len(routes) == 0 || routes[0].Type != unix.RTN_LOCAL {
		return ask.Denied(fmt.Sprintf("the connection is from %v, which is not an address of its network namespace: root may pass it", a))
	}
	return nil
}

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

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/internal/ask"
	"headgate.dev/headgate/shaper"
)

// connectionOf reads a connection's addresses from its descriptor, and trusts no other source.
func connectionOf(fd int) (c shaper.Conn, err error) {
	if fd < 0 {
		return c, errors.New("missing file descriptor: pass the connection's descriptor with the request (SCM_RIGHTS)")
	}
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return c, errors.New("descriptor is not a socket: pass the descriptor of a connection")
	}
	proto, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	switch {
	case err != nil:
		return c, err
	case proto == unix.IPPROTO_MPTCP:
		return c, errors.New("descriptor is a Multipath TCP connection, which has several subflows: disable MPTCP (in Go, SetMultipathTCP(false))")
	case domain != unix.AF_INET && domain != unix.AF_INET6 || proto != unix.IPPROTO_TCP && proto != unix.IPPROTO_UDP:
		return c, errors.New("descriptor is not a TCP or UDP socket over IPv4 or IPv6: pass the descriptor of such a connection")
	}
	c.Proto = group.TCP
	if proto == unix.IPPROTO_UDP {
		c.Proto = group.UDP
	}
	if c.A, err = end(fd, unix.Getsockname); err != nil {
		return c, fmt.Errorf("cannot read the connection's local address: %w", err)
	}
	if c.B, err = end(fd, unix.Getpeername); err != nil {
		return c, fmt.Errorf("socket is not connected (%w): pass it after it is connected", err)
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
	case *unix.SockaddrInet6: // IPv4-mapped addresses are sent as IPv4
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port)), nil
	}
	return netip.AddrPort{}, errors.New("unsupported address family")
}

// verifyAddresses rejects a connection whose addresses a user may have forged: in a network namespace that
// the user created, where any address can be configured, or with a socket bound to an address that
// its namespace does not have (IP_FREEBIND). A namespace that root created, such as a container's,
// has the addresses that root configured.
func verifyAddresses(fd int, c shaper.Conn) error {
	ns, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("cannot determine the connection's network namespace: %w", err)
	}
	defer unix.Close(ns)
	ours, err := isNamespace(ns, "/proc/thread-self/ns/net")
	switch {
	case err != nil:
		return err
	case ours:
		return verifyLocalAddress(ns, c.A.Addr())
	}
	owner, err := unix.IoctlRetInt(ns, unix.NS_GET_USERNS)
	if err == nil {
		defer unix.Close(owner)
		if ours, err = isNamespace(owner, "/proc/thread-self/ns/user"); ours {
			return verifyLocalAddress(ns, c.A.Addr())
		}
	}
	if err != nil && !errors.Is(err, unix.EPERM) { // EPERM: the owner is a user namespace that the agent may not inspect
		return fmt.Errorf("cannot determine the owner of the connection's network namespace: %w", err)
	}
	return ask.Denied("connection is in a network namespace that root did not create, and its addresses are not trusted: pass it as root")
}

// isNamespace reports whether a descriptor and a path are the same namespace.
func isNamespace(fd int, path string) (bool, error) {
	var a, b unix.Stat_t
	if err := unix.Fstat(fd, &a); err != nil {
		return false, err
	}
	if err := unix.Stat(path, &b); err != nil {
		return false, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return a.Dev == b.Dev && a.Ino == b.Ino, nil
}

// verifyLocalAddress rejects an address that is not local to a network namespace.
func verifyLocalAddress(ns int, a netip.Addr) error {
	in, err := vnl.NewHandleAt(netns.NsHandle(ns), unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("cannot read the addresses of the connection's network namespace: %w", err)
	}
	defer in.Close()
	// RouteGet returns an error if there is no route to the address.
	routes, err := in.RouteGet(net.IP(a.AsSlice()))
	if err != nil || len(routes) == 0 || routes[0].Type != unix.RTN_LOCAL {
		return ask.Denied(fmt.Sprintf("connection has the local address %v, which is not an address of its network namespace: pass it as root", a))
	}
	return nil
}

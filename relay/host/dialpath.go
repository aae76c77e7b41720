package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/relay"
)

// dialPath opens an authenticated connection to an exit on a path: tcp is the connection, over what carries the bytes.
func dialPath(ctx context.Context, auth *Auth, e relay.Exit, p relay.Path) (tcp *net.TCPConn, over net.Conn, err error) {
	dialer := net.Dialer{Timeout: dialTimeout, Control: func(network, address string, raw syscall.RawConn) error {
		return errors.Join(prepare(network, address, raw), bind(p, raw))
	}}
	if p.Source.IsValid() {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(p.Source, 0))
	}
	c, err := dialer.DialContext(ctx, "tcp", e.AddressOf(p).String())
	if err != nil {
		return nil, nil, err
	}
	if over, err = auth.Client(c); err != nil {
		c.Close()
		return nil, nil, err
	}
	return c.(*net.TCPConn), over, nil
}

// bind selects the path of a socket that is not connected yet.
func bind(p relay.Path, raw syscall.RawConn) (err error) {
	control := raw.Control(func(fd uintptr) {
		if p.Device != "" {
			err = unix.BindToDevice(int(fd), p.Device)
		}
		if p.Mark != 0 {
			err = errors.Join(err, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, int(p.Mark)))
		}
	})
	if err = errors.Join(control, err); err != nil {
		return fmt.Errorf("path %s: %w", p.Name, err)
	}
	return nil
}

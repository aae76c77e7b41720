package host

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// applications are the connections of applications that no session carries: those whose request is read, and those that
// go direct.
type applications struct {
	ctx context.Context // ends them
	sync.WaitGroup
}

// direct is a connection to a destination without a relay.
type direct struct {
	net.Conn
	apps *applications
}

// dialDirect connects to a destination, for an application of apps.
func dialDirect(ctx context.Context, apps *applications, to netip.AddrPort) (direct, error) {
	d := net.Dialer{Timeout: connectTimeout, Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			// So that the agent does not take its own connection; an agent without the right to takes none.
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, ownMark)
		})
	}}
	c, err := d.DialContext(ctx, "tcp", to.String())
	return direct{c, apps}, err
}

// carry passes the bytes of an application's connection on.
func (d direct) carry(app net.Conn) { d.apps.Go(func() { splice(d.apps.ctx, app, d.Conn) }) }

// splice passes bytes on between two connections until both directions have ended. An error of one connection
// resets both, as does the end of ctx.
func splice(ctx context.Context, a, b net.Conn) {
	end := func() {
		reset(a)
		reset(b)
	}
	defer context.AfterFunc(ctx, end)()
	pass := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			end()
			return
		}
		closeWrite(to)
	}
	var both sync.WaitGroup
	both.Go(func() { pass(a, b) })
	pass(b, a)
	both.Wait()
	a.Close()
	b.Close()
}

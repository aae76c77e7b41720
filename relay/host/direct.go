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

// direct is a connection to a destination without a relay.
type direct struct {
	net.Conn
	ctx context.Context
}

// dialDirect connects to a destination. The connection ends with agent.
func dialDirect(ctx, agent context.Context, to netip.AddrPort) (direct, error) {
	d := net.Dialer{Timeout: connectTimeout, Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			// So that the agent does not take its own connection; an agent without the right to takes none.
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, ownMark)
		})
	}}
	c, err := d.DialContext(ctx, "tcp", to.String())
	return direct{c, agent}, err
}

// carry passes the bytes of an application's connection on.
func (d direct) carry(app net.Conn) { go splice(d.ctx, app, d.Conn) }

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

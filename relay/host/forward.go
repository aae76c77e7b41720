package host

import (
	"log/slog"
	"net"
	"net/netip"
)

// forward carries the connections of a listener to a destination over the exit that exit returns. While that is nil, or no
// stream to it is open, they go direct.
func forward(apps *applications, l net.Listener, exit func() carrier, to netip.AddrPort, log *slog.Logger) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		if d := exit(); d != nil && d.Streams() > 0 {
			err = d.Carry(c, to)
		} else {
			apps.Go(func() { forwardDirect(apps, c, to, log) })
		}
		if err != nil {
			c.Close()
			return err
		}
	}
}

func forwardDirect(apps *applications, c net.Conn, to netip.AddrPort, log *slog.Logger) {
	d, err := dialDirect(apps.ctx, apps, to)
	if err != nil {
		log.Warn("cannot connect to the destination without the relay", "from", c.RemoteAddr(), "to", to, "error", err)
		reset(c)
		return
	}
	d.carry(c)
}

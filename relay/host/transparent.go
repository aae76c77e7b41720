package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/internal/listen"
	"headgate.dev/headgate/relay"
)

// transparentPort is the port of the transparent listener.
const transparentPort = 8425

// exitInterval is how often the agent looks which exits have a stream: connections to one without go direct.
const exitInterval = 200 * time.Millisecond

// transparent sets IP_TRANSPARENT, with which a socket has addresses that are not this host's, and the agent's mark.
func transparent(network, _ string, raw syscall.RawConn) (err error) {
	control := raw.Control(func(fd uintptr) {
		level, option := unix.SOL_IP, unix.IP_TRANSPARENT
		if network == "tcp6" {
			level, option = unix.SOL_IPV6, unix.IPV6_TRANSPARENT
		}
		err = errors.Join(unix.SetsockoptInt(int(fd), level, option, 1), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_MARK, ownMark))
	})
	return errors.Join(control, err)
}

// listenTransparent opens the listeners for connections that the kernel takes.
func listenTransparent(ctx context.Context, s *sockets) (all []net.Listener, err error) {
	for _, network := range []string{"tcp4", "tcp6"} {
		l, err := s.listen(ctx, network, fmt.Sprintf(":%d", transparentPort), transparent)
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, fmt.Errorf("cannot take connections: %w", listen.Remedy(err, ""))
		}
		all = append(all, l)
	}
	return all, nil
}

// taker takes the connections of transparent listeners.
type taker struct {
	policy  relay.Policy
	dialers []carrier
	apps    *applications
	open    takenSet
	log     *slog.Logger
}

// serve carries the connections of a transparent listener to where they were going. A connection that cannot be carried
// is reset.
func (t *taker) serve(l net.Listener) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		if err := t.take(c.(*net.TCPConn)); err != nil {
			t.log.Warn("cannot carry connection", "from", c.RemoteAddr(), "to", c.LocalAddr(), "error", err)
			reset(c)
		}
	}
}

func (t *taker) take(c *net.TCPConn) error {
	from, to := addrPort(c.RemoteAddr()), addrPort(c.LocalAddr())
	n := exits{t.policy, t.dialers}.of(to.Addr())
	lost := n < 0 && t.policy.HasAnnounced() && !isOwn(to.Addr()) // by the exit's last stream
	if n < 0 && !lost || to.Port() == transparentPort {
		return errors.New("it came to the agent itself")
	}
	if slices.ContainsFunc(t.policy.Exits, func(e relay.Exit) bool { return e.Address.Addr().Unmap() == from.Addr() }) {
		return errLoop // of an exit that does not keep the client's address
	}
	app, err := t.open.add(c, from, to)
	if err != nil {
		return err
	}
	if lost || t.dialers[n].Streams() == 0 { // intercept has not seen it yet
		t.apps.Go(func() { forwardDirect(t.apps, app, to, t.log) })
		return nil
	}
	return t.dialers[n].Carry(app, to)
}

// addrPort returns a TCP address without the form of an IPv4 address in IPv6.
func addrPort(a net.Addr) netip.AddrPort {
	p := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// intercepts reports whether an agent changes how the kernel handles connections.
func intercepts(p relay.Policy) bool { return len(p.Take) > 0 || p.Accept.KeepSource }

// intercept keeps the kernel taking the connections whose exit has a stream, until ctx ends. What it has made stays if
// keep returns true then.
func intercept(ctx context.Context, p relay.Policy, dialers []carrier, log *slog.Logger, keep func() bool) error {
	defer func() {
		if keep() {
			return
		}
		if err := removeInterception(); err != nil {
			log.Error("cannot remove what takes connections", "error", err)
		}
	}()
	rules := newTakeRules(p, dialers, log)
	var applied *interception
	for {
		i := interception{port: transparentPort, rules: rules.now(), exit: p.Accept.KeepSource}
		if applied == nil || !reflect.DeepEqual(i, *applied) {
			err := i.apply()
			switch {
			case err == nil:
				applied = &i
			case !reflect.DeepEqual(i.rules, rules.now()): // a cgroup has ended meanwhile: try again
			default:
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(exitInterval):
		}
	}
}

// dialFrom connects to a destination with the client's address.
func dialFrom(ctx context.Context, from, to netip.AddrPort) (net.Conn, error) {
	network := "tcp4"
	if to.Addr().Is6() {
		network = "tcp6"
	}
	d := net.Dialer{Timeout: connectTimeout, LocalAddr: net.TCPAddrFromAddrPort(from), Control: transparent}
	return d.DialContext(ctx, network, to.String())
}

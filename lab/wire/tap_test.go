package wire_test

import (
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/wire"
)

// A device queues 5,000 frames that are not read: with the driver's own queue of 500 the rest was
// dropped.
func TestTapKeepsWhatIsNotRead(t *testing.T) {
	labtest.NeedRoot(t)
	h := &host{ip4: netip.MustParsePrefix("10.77.0.1/24"), ip6: netip.MustParsePrefix("fd77::1/64")}
	other := &host{end: 1, mac: net.HardwareAddr{2, 0, 0, 0, 0, 2}, ip4: netip.MustParsePrefix("10.77.0.2/24"), ip6: netip.MustParsePrefix("fd77::2/64")}
	check(t, h.make())
	defer func() { h.nl.Close(); h.ns.Close() }()
	var tap *wire.Tap
	check(t, h.Do(func() (err error) { tap, err = wire.OpenTap(device); return err }))
	defer tap.Close()
	check(t, h.Do(h.setUp))
	check(t, h.knows(other))
	l, err := h.nl.LinkByName(device)
	check(t, err)
	before := l.Attrs().Statistics.TxDropped
	check(t, h.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64<<20); err != nil {
			return err
		}
		to := &unix.SockaddrInet4{Port: 9, Addr: other.ip4.Addr().As4()}
		for range 5000 {
			if err := unix.Sendto(fd, []byte("headgate"), 0, to); err != nil {
				return err
			}
		}
		return nil
	}))
	l, err = h.nl.LinkByName(device)
	check(t, err)
	if n := l.Attrs().Statistics.TxDropped - before; n > 0 {
		t.Errorf("the device dropped %d of 5000 frames", n)
	}
}

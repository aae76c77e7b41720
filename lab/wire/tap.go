package wire

import (
	"fmt"
	"os"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Tap is an open TAP device; closing it removes the device.
type Tap struct {
	Name string
	fd   int
	nl   *netlink.Handle // in its namespace

	drops atomic.Uint64 // drops that missed has seen
}

// Offloads that a TAP may leave to the reader (linux/if_tun.h). USO is more recent than the others
// (kernel 6.2); it is tried with them first.
const (
	tsoOffloads = unix.TUN_F_CSUM | unix.TUN_F_TSO4 | unix.TUN_F_TSO6 | unix.TUN_F_TSO_ECN
	usoOffloads = 0x20 | 0x40 // TUN_F_USO4, TUN_F_USO6
)

// deviceQueue is how many frames a device queues for a thread that does not read them. With the
// driver's 500 a stall of the machine of 5 ms lost some of 100,000 datagrams a second, and the run was
// not valid; this is 100 ms of them.
const deviceQueue = 10_000

// OpenTap creates a TAP device in the network namespace of the calling thread, which must be locked to
// its goroutine.
func OpenTap(name string) (*Tap, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/dev/net/tun", Err: err}
	}
	req, err := unix.NewIfreq(name)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	req.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("make TAP device %s: %w", name, err)
	}
	if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tsoOffloads|usoOffloads); err != nil {
		if err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, tsoOffloads); err != nil {
			unix.Close(fd)
			return nil, fmt.Errorf("cannot turn on the offloads of TAP device %s: %w", name, err)
		}
	}
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot open netlink for TAP device %s: %w", name, err)
	}
	t := &Tap{Name: name, fd: fd, nl: nl}
	l, err := nl.LinkByName(name)
	if err == nil {
		err = nl.LinkSetTxQLen(l, deviceQueue)
	}
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("cannot set the queue length of TAP device %s: %w", name, err)
	}
	return t, nil
}

// missed returns how many frames the device had to drop because they were not read, as far as is
// known: the count never decreases.
func (t *Tap) missed() uint64 {
	if l, err := t.nl.LinkByName(t.Name); err == nil && l.Attrs().Statistics != nil {
		t.drops.Store(max(l.Attrs().Statistics.TxDropped, t.drops.Load()))
	}
	return t.drops.Load()
}

// Close removes the device. A Link that uses the device closes it; do not call Close then.
func (t *Tap) Close() error {
	t.nl.Close()
	return unix.Close(t.fd)
}

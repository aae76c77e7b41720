package lab

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ethtoolValue is struct ethtool_value (linux/ethtool.h).
type ethtoolValue struct{ cmd, data uint32 }

// ethtoolSet is one ethtool ioctl that sets a value of dev, by socket s.
func ethtoolSet(s int, dev string, cmd, data uint32) error {
	v := ethtoolValue{cmd, data}
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the rest of union ifr_ifru
	}
	copy(req.name[:unix.IFNAMSIZ-1], dev)
	req.data = unsafe.Pointer(&v)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); e != 0 {
		return e
	}
	return nil
}

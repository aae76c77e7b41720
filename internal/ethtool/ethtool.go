// Package ethtool reads and sets single values of a device with the ioctl of linux/ethtool.h, in
// the calling thread's network namespace.
package ethtool

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Get returns the value of a command such as unix.ETHTOOL_GTSO.
func Get(dev string, cmd uint32) (uint32, error) { return request(dev, cmd, 0) }

// Set sets the value of a command such as unix.ETHTOOL_STSO.
func Set(dev string, cmd, value uint32) error {
	_, err := request(dev, cmd, value)
	return err
}

func request(dev string, cmd, data uint32) (uint32, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(s)
	value := struct{ cmd, data uint32 }{cmd, data} // struct ethtool_value
	var req struct {                               // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the rest of union ifr_ifru
	}
	copy(req.name[:unix.IFNAMSIZ-1], dev)
	req.data = unsafe.Pointer(&value)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); e != 0 {
		return 0, e
	}
	return value.data, nil
}

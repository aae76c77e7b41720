// Package ethtool reads and sets single values of a device with the ioctl of linux/ethtool.h, in
// the calling thread's network namespace.
package ethtool

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/unit"
)

// Get returns the value of a command such as unix.ETHTOOL_GTSO.
func Get(dev string, cmd uint32) (uint32, error) { return request(dev, cmd, 0) }

// Set sets the value of a command such as unix.ETHTOOL_STSO.
func Set(dev string, cmd, value uint32) error {
	_, err := request(dev, cmd, value)
	return err
}

// Speed returns the speed of a device's link, false if the driver does not report it.
func Speed(dev string) (unit.Rate, bool) {
	words := make([]uint32, 11) // struct ethtool_cmd
	words[0] = unix.ETHTOOL_GSET
	if ask(dev, words) != nil {
		return 0, false
	}
	// The low and high halves of the speed are the 16 bits at bytes 12 and 28.
	half := func(word int) uint32 { return uint32(*(*uint16)(unsafe.Pointer(&words[word]))) }
	mbit := half(7)<<16 | half(3)
	if mbit == 0 || mbit == 0xffff || mbit == 0xffffffff {
		return 0, false
	}
	return unit.Rate(mbit) * unit.Mbit, true
}

func request(dev string, cmd, data uint32) (uint32, error) {
	words := []uint32{cmd, data} // struct ethtool_value
	err := ask(dev, words)
	return words[1], err
}

// ask executes a command. The words are one of the kernel's structs, which begins with the command;
// the kernel writes the answer into it.
func ask(dev string, words []uint32) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	var req struct { // struct ifreq
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the rest of union ifr_ifru
	}
	copy(req.name[:unix.IFNAMSIZ-1], dev)
	req.data = unsafe.Pointer(&words[0])
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(s), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); e != 0 {
		return e
	}
	return nil
}

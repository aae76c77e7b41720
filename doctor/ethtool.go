package doctor

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Commands of the ethtool ioctl (uapi/linux/ethtool.h). The doctor uses the ioctl instead of
// sysfs, because /sys may belong to another network namespace.
const (
	ethtoolGTXCsum   = 0x16
	ethtoolGTSO      = 0x1e
	ethtoolGGSO      = 0x23
	ethtoolGGRO      = 0x2b
	ethtoolGChannels = 0x3c
)

// ethtool queries one device of the calling thread's network namespace.
type ethtool struct {
	dev    string
	socket int
}

func openEthtool(dev string) (*ethtool, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot query device %s: %w", dev, err)
	}
	return &ethtool{dev, s}, nil
}

func (t *ethtool) close() { unix.Close(t.socket) }

// ask executes a command. The words are one of the kernel's structs, which begins with the
// command; the kernel writes the answer into it.
func (t *ethtool) ask(words []uint32) error {
	var req struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the rest of union ifr_ifru
	}
	copy(req.name[:unix.IFNAMSIZ-1], t.dev)
	req.data = unsafe.Pointer(&words[0])
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(t.socket), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); e != 0 {
		return e
	}
	return nil
}

func (t *ethtool) driver() string {
	info, err := unix.IoctlGetEthtoolDrvinfo(t.socket, t.dev)
	if err != nil {
		return ""
	}
	return unix.ByteSliceToString(info.Driver[:])
}

// value reads a feature's value (struct ethtool_value).
func (t *ethtool) value(cmd uint32) (uint32, error) {
	words := []uint32{cmd, 0}
	err := t.ask(words)
	return words[1], err
}

// txQueues reads the number of transmit queues and combined queues in use (struct
// ethtool_channels); 0 if the driver does not report it.
func (t *ethtool) txQueues() int {
	words := make([]uint32, 9)
	words[0] = ethtoolGChannels
	if t.ask(words) != nil {
		return 0
	}
	return int(words[6] + words[8])
}

package doctor

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate/unit"
)

// Commands of the ethtool ioctl (uapi/linux/ethtool.h). The ioctl is asked and
// not sysfs, because /sys may be another network namespace's.
const (
	ethtoolGSET      = 0x01
	ethtoolGTSO      = 0x1e
	ethtoolGGSO      = 0x23
	ethtoolGGRO      = 0x2b
	ethtoolGChannels = 0x3c
)

// ethtool asks about one device of the calling thread's namespace.
type ethtool struct {
	dev    string
	socket int
}

func openEthtool(dev string) (*ethtool, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot ask about device %s: %w", dev, err)
	}
	return &ethtool{dev, s}, nil
}

func (t *ethtool) close() { unix.Close(t.socket) }

// ask sends a command in the words of a struct of the kernel's, the first of
// which is the command, and reads the answer into them.
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

// value is a feature's: struct ethtool_value.
func (t *ethtool) value(cmd uint32) (uint32, error) {
	words := []uint32{cmd, 0}
	err := t.ask(words)
	return words[1], err
}

// speed is struct ethtool_cmd's: its halves are the 16 bits at bytes 12 and 28.
func (t *ethtool) speed() (unit.Rate, bool) {
	words := make([]uint32, 11)
	words[0] = ethtoolGSET
	if t.ask(words) != nil {
		return 0, false
	}
	half := func(word int) uint32 { return uint32(*(*uint16)(unsafe.Pointer(&words[word]))) }
	mbit := half(7)<<16 | half(3)
	if mbit == 0 || mbit == 0xffff || mbit == 0xffffffff {
		return 0, false
	}
	return unit.Rate(mbit) * unit.Mbit, true
}

// txQueues is struct ethtool_channels': the queues in use for sending, alone and
// combined with receiving; 0 if the driver does not say.
func (t *ethtool) txQueues() int {
	words := make([]uint32, 9)
	words[0] = ethtoolGChannels
	if t.ask(words) != nil {
		return 0
	}
	return int(words[6] + words[8])
}

package groups

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// flood sends UDP frames of many flows from a packet socket; they pass a device's filters and qdiscs
// like any others.
type flood struct {
	fd     int
	frames [][]byte
	msgs   []mmsghdr
	iovs   []unix.Iovec
	random *rand.Rand
	paced  atomic.Int64 // frames that pace has sent
}

// smallest and fullest are sizes of Ethernet frames without their checksum.
const (
	smallest = 60
	fullest  = 1514
)

// mmsghdr is struct mmsghdr of sendmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

const floodBatch = 256

// newFlood opens a socket on a device of the calling thread's namespace, and builds one frame for each
// flow: with random sources and the destination ports of the paper's groups. With ecn they are ECT(0).
// The destination station does not exist, so that the receiver's IP drops the frames at once.
func newFlood(dev string, flows, size int, ecn bool) (*flood, error) {
	link, err := net.InterfaceByName(dev)
	if err != nil {
		return nil, err
	}
	protocol := uint16(unix.ETH_P_IP>>8 | unix.ETH_P_IP<<8&0xff00)
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0) // protocol 0: it receives nothing
	if err != nil {
		return nil, fmt.Errorf("cannot open a packet socket: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Ifindex: link.Index, Protocol: protocol}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot bind a packet socket to %s: %w", dev, err)
	}
	f := &flood{
		fd: fd, frames: make([][]byte, flows), msgs: make([]mmsghdr, floodBatch), iovs: make([]unix.Iovec, floodBatch),
		random: rand.New(rand.NewPCG(1, uint64(flows))),
	}
	for i := range f.frames {
		f.frames[i] = f.frame(link.HardwareAddr, size, ecn)
	}
	for i := range f.msgs {
		f.iovs[i].SetLen(size)
		f.msgs[i].hdr.Iov = &f.iovs[i]
		f.msgs[i].hdr.SetIovlen(1)
	}
	return f, nil
}

func (f *flood) frame(src net.HardwareAddr, size int, ecn bool) []byte {
	b := make([]byte, size)
	copy(b[0:], []byte{2, 0, 0, 0, 0, 0x99})
	copy(b[6:], src)
	binary.BigEndian.PutUint16(b[12:], unix.ETH_P_IP)
	ip := b[14:]
	length := uint16(size - 14)
	ip[0], ip[8], ip[9] = 0x45, 64, unix.IPPROTO_UDP
	if ecn {
		ip[1] = 0b10 // ECT(0), RFC 3168
	}
	binary.BigEndian.PutUint16(ip[2:], length)
	binary.BigEndian.PutUint32(ip[12:], 10<<24|f.random.Uint32N(1<<24))
	binary.BigEndian.PutUint32(ip[16:], 198<<24|18<<16|f.random.Uint32N(1<<16)) // 198.18/15: for benchmarks (RFC 2544)
	binary.BigEndian.PutUint16(ip[10:], checksum(ip[:20]))
	udp := ip[20:]
	binary.BigEndian.PutUint16(udp[0:], uint16(1024+f.random.IntN(64000)))
	binary.BigEndian.PutUint16(udp[2:], uint16(basePort+f.random.IntN(len(seedShares))))
	binary.BigEndian.PutUint16(udp[4:], length-20)
	return b
}

func checksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// each sends one frame of every flow, in order.
func (f *flood) each() error {
	for i := 0; i < len(f.frames); i += floodBatch {
		n := min(floodBatch, len(f.frames)-i)
		if err := f.send(n, func(k int) int { return i + k }); err != nil {
			return err
		}
	}
	return nil
}

// run sends frames of random flows for a time.
func (f *flood) run(d time.Duration) error {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := f.send(floodBatch, func(int) int { return f.random.IntN(len(f.frames)) }); err != nil {
			return err
		}
	}
	return nil
}

func (f *flood) send(n int, which func(k int) int) error {
	for k := range n {
		f.iovs[k].Base = &f.frames[which(k)][0]
	}
	for done := 0; done < n; {
		sent, _, e := unix.Syscall6(unix.SYS_SENDMMSG, uintptr(f.fd), uintptr(unsafe.Pointer(&f.msgs[done])), uintptr(n-done), 0, 0, 0)
		runtime.KeepAlive(f)
		switch e {
		case 0:
			done += int(sent)
		case unix.EINTR, unix.EAGAIN, unix.ENOBUFS:
		default:
			return fmt.Errorf("cannot send frames: %w", e)
		}
	}
	return nil
}

func (f *flood) close() { unix.Close(f.fd) }

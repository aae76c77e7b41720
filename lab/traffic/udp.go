package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/unit"
)

// Constants of UDP flows, chosen by this project except for maxSegments.
const (
	// segmentFrom is the rate from which datagrams are sent in batches (UDP_SEGMENT). Below it single
	// datagrams cost little, and are what most applications send.
	segmentFrom = 200 * unit.Mbit
	// maxSegments is UDP_MAX_SEGMENTS of kernels before 6.9 (linux/udp.h).
	maxSegments = 64
	// udpBuffer holds 30 ms of 1 Gbit/s: the receiver reads once per tick.
	udpBuffer = 8 << 20
	// udpBudget is how long an unlimited flow may send within one tick.
	udpBudget = 500 * time.Microsecond
)

// udpSender numbers its datagrams from 0, in their first 8 bytes, big endian; the next 8 are the send
// time (CLOCK_MONOTONIC).
type udpSender struct {
	f     *flow
	batch int // datagrams per call
	buf   []byte
}

func newUDPSender(f *flow) (*udpSender, error) {
	u := &udpSender{f: f, batch: 1}
	// The kernel segments a batch only if each datagram fits into a packet; otherwise it rejects it.
	whole := f.frame <= mtu+etherHeader
	if whole && (f.highest() >= segmentFrom || f.unlimited()) {
		u.batch = min(maxSegments, maxPayload/f.payload)
		if err := unix.SetsockoptInt(f.send, unix.IPPROTO_UDP, unix.UDP_SEGMENT, f.payload); err != nil {
			u.batch = 1
		}
	}
	u.buf = make([]byte, u.batch*f.payload)
	return u, setOptions(f.send, []option{{f.SendBuffer == 0, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, udpBuffer / 8}})
}

func (u *udpSender) work(now int64) (due int64, err error) {
	f, p := u.f, &u.f.pacer
	if p.update(now) == Unlimited {
		for end := time.Now().Add(udpBudget); time.Now().Before(end); {
			n, err := u.send(u.batch)
			f.sent.unlimited += float64(n) * p.frameBits
			if err != nil || n == 0 {
				return now + int64(tick), err
			}
		}
		return now + int64(tick), nil
	}
	const rounding = 1e-6
	for p.owed >= p.frameBits*(1-rounding) {
		n, err := u.send(min(u.batch, int(p.owed/p.frameBits+rounding)))
		p.owed -= float64(n) * p.frameBits
		if err != nil {
			return 0, err
		}
		if n == 0 {
			break
		}
	}
	return p.due(now, (1-rounding)*p.frameBits), nil
}

// send sends n datagrams in one call, and returns how many the socket accepted: all or none.
func (u *udpSender) send(n int) (int, error) {
	f := u.f
	now := uint64(mono())
	for i := range n {
		binary.BigEndian.PutUint64(u.buf[i*f.payload:], f.sent.datagrams+uint64(i))
		binary.BigEndian.PutUint64(u.buf[i*f.payload+8:], now)
	}
	for {
		_, err := unix.Write(f.send, u.buf[:n*f.payload])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOBUFS):
			return 0, nil
		case errors.Is(err, unix.ECONNREFUSED):
			// An ICMP error of an earlier datagram; this one was not sent.
			continue
		case err != nil:
			return 0, fmt.Errorf("send: %w", err)
		}
		f.sent.datagrams += uint64(n)
		f.sent.bytes += uint64(n * f.payload)
		return n, nil
	}
}

// udpReceiver reads only the numbers and send times of its datagrams, dozens in a call, with the
// kernel's receive timestamps.
type udpReceiver struct {
	f *flow
	b *udpBatch
}

// udpBatch is the buffer for one call. One goroutine reads, so that all flows share one.
type udpBatch struct {
	msgs  [udpReadBatch]mmsghdr
	iovs  [udpReadBatch]unix.Iovec
	heads [udpReadBatch][minPayload]byte
	oobs  [udpReadBatch][udpControl]byte
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

const (
	udpReadBatch = 64
	// udpControl is the size of a timestamp and a byte of TOS as control messages (cmsg(3)).
	udpControl = 64
)

func newUDPBatch() *udpBatch {
	b := &udpBatch{}
	for i := range b.msgs {
		b.iovs[i].Base = &b.heads[i][0]
		b.iovs[i].SetLen(minPayload)
		b.msgs[i].hdr.Iov = &b.iovs[i]
		b.msgs[i].hdr.SetIovlen(1)
		b.msgs[i].hdr.Control = &b.oobs[i][0]
	}
	return b
}

func newUDPReceiver(f *flow, b *udpBatch) (*udpReceiver, error) {
	receiveTOS := unix.IP_RECVTOS
	if f.IPv6 {
		receiveTOS = unix.IPV6_RECVTCLASS
	}
	return &udpReceiver{f, b}, setOptions(f.recv, []option{
		{true, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1},
		{f.ECN, f.tosLevel(), receiveTOS, 1},
		{f.ReceiveBuffer == 0, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, udpBuffer},
	})
}

func (u *udpReceiver) work() error {
	b := u.b
	for {
		for i := range b.msgs {
			b.msgs[i].hdr.SetControllen(udpControl) // the kernel overwrote it
		}
		// With MSG_TRUNC len is the datagram's real length.
		n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(u.f.recv), uintptr(unsafe.Pointer(&b.msgs[0])),
			udpReadBatch, unix.MSG_DONTWAIT|unix.MSG_TRUNC, 0, 0)
		runtime.KeepAlive(u)
		switch e {
		case 0:
		case unix.EINTR, unix.ECONNREFUSED:
			continue
		case unix.EAGAIN:
			return nil
		default:
			return fmt.Errorf("receive: %w", e)
		}
		u.f.mu.Lock()
		c := &u.f.received
		for i := range int(n) {
			c.datagrams++
			c.bytes += uint64(b.msgs[i].len)
			c.next = max(c.next, binary.BigEndian.Uint64(b.heads[i][:])+1)
			at, ce := control(b.oobs[i][:b.msgs[i].hdr.Controllen])
			if at != 0 {
				c.jitter.arrived(int64(binary.BigEndian.Uint64(b.heads[i][8:])), at)
			}
			if ce {
				c.ce++
			}
		}
		u.f.mu.Unlock()
		if n < udpReadBatch {
			return nil
		}
	}
}

// control reads a datagram's control messages: the receive time (CLOCK_REALTIME in ns, 0 if it is
// missing) and whether it has CE. It is called for each datagram, so it does not allocate.
func control(oob []byte) (at int64, ce bool) {
	for len(oob) >= unix.SizeofCmsghdr {
		size := int(binary.NativeEndian.Uint64(oob))
		if size < unix.SizeofCmsghdr || size > len(oob) {
			break
		}
		data := oob[unix.SizeofCmsghdr:size]
		level, kind := binary.NativeEndian.Uint32(oob[8:]), binary.NativeEndian.Uint32(oob[12:])
		switch {
		case level == unix.SOL_SOCKET && kind == unix.SCM_TIMESTAMPNS && len(data) >= 16:
			at = int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
		case level == unix.IPPROTO_IP && kind == unix.IP_TOS, level == unix.IPPROTO_IPV6 && kind == unix.IPV6_TCLASS:
			ce = len(data) > 0 && data[0]&3 == 3 // an int on little-endian machines, or a byte
		}
		oob = oob[min(unix.CmsgSpace(size-unix.SizeofCmsghdr), len(oob)):]
	}
	return at, ce
}

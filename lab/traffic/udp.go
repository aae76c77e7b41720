package traffic

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate/unit"
)

// Constants of UDP flows, ours but for maxSegments.
const (
	// segmentFrom is the rate from which datagrams are handed over by the dozen
	// (UDP_SEGMENT): below it single ones cost little, and are what a path would
	// see from most applications.
	segmentFrom = 200 * unit.Mbit
	// maxSegments is UDP_MAX_SEGMENTS of kernels before 6.9 (linux/udp.h).
	maxSegments = 64
	// udpBuffer holds 30 ms of 1 Gbit/s: the receiver looks once per tick.
	udpBuffer = 8 << 20
	// udpBudget is how long an unlimited flow may send within one tick.
	udpBudget = 500 * time.Microsecond
)

// udpSender numbers its datagrams from 0: the first 8 bytes, big endian.
type udpSender struct {
	f     *flow
	batch int // datagrams per call
	buf   []byte
}

func newUDPSender(f *flow) (*udpSender, error) {
	u := &udpSender{f: f, batch: 1}
	if maxRate(f.Schedule) >= segmentFrom || hasUnlimited(f.Schedule) {
		u.batch = min(maxSegments, maxPayload/f.payload)
		if err := unix.SetsockoptInt(f.send, unix.IPPROTO_UDP, unix.UDP_SEGMENT, f.payload); err != nil {
			u.batch = 1
		}
	}
	u.buf = make([]byte, u.batch*f.payload)
	return u, errors.Join(
		unix.SetsockoptInt(f.recv, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, udpBuffer),
		unix.SetsockoptInt(f.send, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, udpBuffer/8),
	)
}

func (u *udpSender) work(now int64) error {
	f, frameBits := u.f, float64(u.f.frame*8)
	if f.pacer.update(&f.Flow, now, frameBits) == Unlimited {
		for end := time.Now().Add(udpBudget); time.Now().Before(end); {
			n, err := u.send(u.batch)
			f.sent.unlimited += float64(n) * frameBits
			if err != nil || n == 0 {
				return err
			}
		}
		return nil
	}
	for f.pacer.owed >= frameBits*(1-1e-6) {
		n, err := u.send(min(u.batch, int(f.pacer.owed/frameBits+1e-6)))
		f.pacer.owed -= float64(n) * frameBits
		if err != nil || n == 0 {
			return err
		}
	}
	return nil
}

// send sends n datagrams in one call, and says how many the socket took: all or
// none.
func (u *udpSender) send(n int) (int, error) {
	f := u.f
	for i := range n {
		binary.BigEndian.PutUint64(u.buf[i*f.payload:], f.sent.datagrams+uint64(i))
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

// udpReceiver reads only the numbers of its datagrams, dozens in a call.
type udpReceiver struct {
	f    *flow
	msgs []mmsghdr
	iovs []unix.Iovec
	seqs [][8]byte
}

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

const udpReadBatch = 64

func newUDPReceiver(f *flow) *udpReceiver {
	u := &udpReceiver{
		f: f, msgs: make([]mmsghdr, udpReadBatch), iovs: make([]unix.Iovec, udpReadBatch), seqs: make([][8]byte, udpReadBatch),
	}
	for i := range u.msgs {
		u.iovs[i].Base = &u.seqs[i][0]
		u.iovs[i].SetLen(len(u.seqs[i]))
		u.msgs[i].hdr.Iov = &u.iovs[i]
		u.msgs[i].hdr.SetIovlen(1)
	}
	return u
}

func (u *udpReceiver) work(int64) error {
	for {
		// MSG_TRUNC makes len the datagram's real length.
		n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(u.f.recv), uintptr(unsafe.Pointer(&u.msgs[0])),
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
			c.bytes += uint64(u.msgs[i].len)
			c.next = max(c.next, binary.BigEndian.Uint64(u.seqs[i][:])+1)
		}
		u.f.mu.Unlock()
		if n < udpReadBatch {
			return nil
		}
	}
}

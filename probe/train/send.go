package train

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/probe"
)

const (
	// MinSpacing is the shortest distance at which single packets are sent on time (measured; a
	// system call with the path through the stack takes 3 to 8 us).
	MinSpacing = 12 * time.Microsecond
	// atOnce is the maximum number of packets in one call (UDP_MAX_SEGMENTS before Linux
	// 6.9), atOnceBytes the maximum payload.
	atOnce      = 64
	atOnceBytes = 65_000
)

// Sent is the sender's record of a train.
type Sent struct {
	// At is when each packet was passed to the kernel, in ns of CLOCK_MONOTONIC.
	At []int64
	// Delay is by how much the train took longer than planned, because the sending thread
	// stalled or the socket buffer was full.
	Delay time.Duration
}

// Send sends a train, and returns when the kernel has its last packet. The pause before
// the first part begins with the call.
func (f *Flow) Send(ctx context.Context, number uint32, t probe.Train) (Sent, error) {
	o := sender{flow: f, number: number, done: ctx.Done(), noGSO: t.Apart, sent: Sent{At: make([]int64, 0, t.Count())}}
	for _, p := range t.Parts {
		if p.Size < MinSize(f.peer.Addr()) || p.Size > 65_535 {
			return Sent{}, fmt.Errorf("packet size of %d bytes is invalid: use %d to 65535", p.Size, MinSize(f.peer.Addr()))
		}
		o.largest = max(o.largest, p.Size-headerOverhead(f.peer.Addr()))
	}
	o.prepare()
	runRealtime(func() { o.run(t) })
	if o.err == nil && len(o.sent.At) < t.Count() {
		// context.Cause takes a lock, which a SCHED_FIFO thread must not wait for, so it
		// is called only here.
		o.err = context.Cause(ctx)
	}
	return o.sent, o.err
}

// sender is a train that is being sent.
type sender struct {
	flow    *Flow
	number  uint32
	done    <-chan struct{}
	sent    Sent
	err     error
	fd      int
	largest int // payload
	next    uint32
	noGSO   bool // without GSO

	space   []byte // atOnce packets, one directly after the other
	name    [unix.SizeofSockaddrInet6]byte
	nameLen uint32
	oob     [24]byte // a UDP_SEGMENT
	iov     [atOnce]unix.Iovec
	msgs    [atOnce]mmsghdr
}

// mmsghdr is struct mmsghdr of the kernel.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

func (o *sender) prepare() {
	o.space = make([]byte, max(atOnceBytes, o.largest))
	rand.Read(o.space) // random, so that a compressing link cannot shrink it
	o.fd = o.flow.socket.fd
	o.nameLen = o.flow.socket.name(o.flow.peer, &o.name)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&o.oob[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
}

// run sends the parts. A late packet delays all later packets.
func (o *sender) run(t probe.Train) {
	due := float64(nanotime())
	breathe := yielder{now: int64(due)}
	for i, p := range t.Parts {
		due += float64(p.Pause)
		if i > 0 && p.Pause == 0 {
			due += p.Gap()
		}
		size := p.Size - headerOverhead(o.flow.peer.Addr())
		maxGroup := max(min(atOnce, atOnceBytes/size), 1)
		gap, group := p.Gap(), maxGroup
		if gap > 0 {
			group = min(maxGroup, max(1, int(float64(MinSpacing)/gap+0.999)))
		}
		for n, left := 0, p.Count; left > 0; left -= n {
			due += gap * float64(n)
			n = min(group, left)
			now := waitUntil(int64(due), o.done)
			breathed := gap > 0 && breathe.due(now, gap*float64(group))
			if breathed {
				now = waitUntil(now+yieldDuration, o.done)
				breathe.now = now
				// The packets that became due during the yield are sent at once, and the
				// later ones on time.
				n = min(maxGroup, left, n+int(max(0, float64(now)-due)/gap))
			}
			select {
			case <-o.done:
				return
			default:
			}
			switch late := float64(now) - due; {
			case breathed && late < float64(time.Millisecond):
			case gap == 0 && late <= float64(time.Millisecond):
				due = float64(now)
			case late > float64(time.Microsecond): // the next packet can make up for 1 us
				o.sent.Delay += time.Duration(late)
				due = float64(now)
			}
			if o.pass(n, size); o.err != nil {
				return
			}
		}
	}
}

// pass passes n packets to the kernel, with one call if possible.
func (o *sender) pass(n, size int) {
	for i := range n {
		Header{Data, o.flow.session, o.number, o.next + uint32(i)}.Put(o.space[i*size:])
	}
	at := nanotime()
	if n > 1 && !o.noGSO {
		switch e := o.segmented(n, size); e {
		case 0:
			o.handed(n, at)
			return
		case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.ENOPROTOOPT:
			o.noGSO = true
		default:
			o.err = sendError(e, size)
			return
		}
	}
	for i := 0; i < n; {
		at = nanotime()
		done, e := o.sendEach(i, n, size)
		if e != 0 {
			o.err = sendError(e, size)
			return
		}
		o.handed(done, at)
		i += done
	}
}

// handed records n packets as sent.
func (o *sender) handed(n int, at int64) {
	for range n {
		o.sent.At = append(o.sent.At, at)
	}
	o.next += uint32(n)
}

func (o *sender) header(iov *unix.Iovec) unix.Msghdr {
	h := unix.Msghdr{Iov: iov, Iovlen: 1}
	if o.nameLen > 0 {
		h.Name, h.Namelen = &o.name[0], o.nameLen
	}
	return h
}

// segmented sends packets with one GSO call (UDP_SEGMENT).
func (o *sender) segmented(n, size int) unix.Errno {
	binary.NativeEndian.PutUint16(o.oob[unix.CmsgLen(0):], uint16(size))
	o.iov[0] = unix.Iovec{Base: &o.space[0], Len: uint64(n * size)}
	h := o.header(&o.iov[0])
	h.Control, h.Controllen = &o.oob[0], uint64(unix.CmsgSpace(2))
	_, e := o.retryFull(func() (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(o.fd), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT)
		return r, e
	})
	return e
}

// sendEach sends the packets i to n without GSO, and returns the number of packets sent.
func (o *sender) sendEach(i, n, size int) (int, unix.Errno) {
	for j := i; j < n; j++ {
		o.iov[j] = unix.Iovec{Base: &o.space[j*size], Len: uint64(size)}
		o.msgs[j] = mmsghdr{hdr: o.header(&o.iov[j])}
	}
	r, e := o.retryFull(func() (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(o.fd), uintptr(unsafe.Pointer(&o.msgs[i])), uintptr(n-i), unix.MSG_DONTWAIT, 0, 0)
		return r, e
	})
	return int(r), e
}

// patience bounds how long a train waits for space in the socket buffer.
const patience = 5 * time.Second

// retryFull repeats a call that found the socket buffer full or that only reports an ICMP
// message about an earlier packet. The raw system calls do not inform the Go runtime:
// they do not block, and handing off the thread's P would cost more than most of the
// calls.
func (o *sender) retryFull(call func() (uintptr, unix.Errno)) (uintptr, unix.Errno) {
	begun, icmp := nanotime(), 0
	for {
		r, e := call()
		switch e {
		case unix.EAGAIN, unix.ENOBUFS, unix.EINTR:
			if nanotime()-begun > int64(patience) {
				return r, e
			}
		case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH:
			if icmp++; icmp > 3 {
				return r, e
			}
		default:
			return r, e
		}
	}
}

func sendError(e unix.Errno, size int) error {
	switch e {
	case unix.EMSGSIZE:
		return fmt.Errorf("cannot send packets with %d bytes of payload: they exceed the MTU of the local device: %w", size, e)
	case unix.EPERM, unix.EACCES:
		return fmt.Errorf("cannot send train: the local firewall blocks it: %w", e)
	}
	return fmt.Errorf("cannot send train: %w", e)
}

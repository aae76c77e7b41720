package train

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate/probe"
)

const (
	// Slot is how far apart single packets can be sent on time (measured; a system
	// call with its way through the stack takes 3 to 8 us).
	Slot = 12 * time.Microsecond
	// atOnce is how many packets one call hands over at the most (UDP_MAX_SEGMENTS
	// before Linux 6.9), and atOnceBytes how much payload.
	atOnce      = 64
	atOnceBytes = 65_000
)

// Sent is how a train left.
type Sent struct {
	// At is when each packet was handed to the kernel, in ns of CLOCK_MONOTONIC.
	At []int64
	// Late is by how much the train was longer than it should have been, because the
	// sending thread stood still or the kernel took no more.
	Late time.Duration
}

// Send sends a train, and returns when its last packet is with the kernel. The pause
// before its first part begins now.
func (f *Flow) Send(ctx context.Context, number uint32, t probe.Train) (Sent, error) {
	o := outgoing{flow: f, number: number, done: ctx.Done(), sent: Sent{At: make([]int64, 0, t.Count())}}
	for _, p := range t.Parts {
		if p.Size < Least(f.peer.Addr()) || p.Size > 65_535 {
			return Sent{}, fmt.Errorf("packets of %d bytes: they have from %d to 65535", p.Size, Least(f.peer.Addr()))
		}
		o.largest = max(o.largest, p.Size-headers(f.peer.Addr()))
	}
	o.prepare()
	spinning(func() { o.run(t) })
	if o.err == nil && len(o.sent.At) < t.Count() {
		// Not before: this waits for a lock, which a thread that is held must not.
		o.err = context.Cause(ctx)
	}
	return o.sent, o.err
}

// outgoing is a train on its way out.
type outgoing struct {
	flow    *Flow
	number  uint32
	done    <-chan struct{}
	sent    Sent
	err     error
	fd      int
	largest int // payload
	next    uint32
	plain   bool // without GSO

	space   []byte // atOnce packets, one after the other
	name    [unix.SizeofSockaddrInet6]byte
	nameLen uint32
	oob     [24]byte // a UDP_SEGMENT
	iov     [atOnce]unix.Iovec
	msgs    [atOnce]mmsghdr
}

// mmsghdr is struct mmsghdr.
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
	_   [4]byte
}

func (o *outgoing) prepare() {
	o.space = make([]byte, max(atOnceBytes, o.largest))
	rand.Read(o.space) // what a link that compresses cannot make smaller
	o.fd = o.flow.socket.fd
	o.nameLen = o.flow.socket.name(o.flow.peer, &o.name)
	h := (*unix.Cmsghdr)(unsafe.Pointer(&o.oob[0]))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
}

// run sends part after part. A packet that is late moves all after it.
func (o *outgoing) run(t probe.Train) {
	due := float64(nanotime())
	breathe := breather{now: int64(due)}
	for i, p := range t.Parts {
		due += float64(p.Pause)
		if i > 0 && p.Pause == 0 {
			due += p.Gap()
		}
		size := p.Size - headers(o.flow.peer.Addr())
		most := max(min(atOnce, atOnceBytes/size), 1)
		gap, group := p.Gap(), most
		if gap > 0 {
			group = min(most, max(1, int(float64(Slot)/gap+0.999)))
		}
		for n, left := 0, p.Count; left > 0; left -= n {
			due += gap * float64(n)
			n = min(group, left)
			now := until(int64(due), o.done)
			breathed := gap > 0 && breathe.due(now, gap*float64(group))
			if breathed {
				now = until(now+breath, o.done)
				breathe.now = now
				// What was due meanwhile leaves at once, and what follows on time.
				n = min(most, left, n+int(max(0, float64(now)-due)/gap))
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
			case late > float64(time.Microsecond): // within a us the next one may make up for it
				o.sent.Late += time.Duration(late)
				due = float64(now)
			}
			if o.hand(n, size); o.err != nil {
				return
			}
		}
	}
}

// hand gives n packets to the kernel, at once if it can.
func (o *outgoing) hand(n, size int) {
	for i := range n {
		Header{Data, o.flow.session, o.number, o.next + uint32(i)}.Put(o.space[i*size:])
	}
	at := nanotime()
	if n > 1 && !o.plain {
		switch e := o.segmented(n, size); e {
		case 0:
			o.handed(n, at)
			return
		case unix.EIO, unix.EINVAL, unix.EMSGSIZE, unix.ENOPROTOOPT:
			o.plain = true
		default:
			o.err = sendError(e, size)
			return
		}
	}
	for i := 0; i < n; {
		at = nanotime()
		done, e := o.each(i, n, size)
		if e != 0 {
			o.err = sendError(e, size)
			return
		}
		o.handed(done, at)
		i += done
	}
}

// handed notes n packets as sent.
func (o *outgoing) handed(n int, at int64) {
	for range n {
		o.sent.At = append(o.sent.At, at)
	}
	o.next += uint32(n)
}

func (o *outgoing) header(iov *unix.Iovec) unix.Msghdr {
	h := unix.Msghdr{Iov: iov, Iovlen: 1}
	if o.nameLen > 0 {
		h.Name, h.Namelen = &o.name[0], o.nameLen
	}
	return h
}

// segmented sends packets as one that is cut up later (UDP_SEGMENT).
func (o *outgoing) segmented(n, size int) unix.Errno {
	binary.NativeEndian.PutUint16(o.oob[unix.CmsgLen(0):], uint16(size))
	o.iov[0] = unix.Iovec{Base: &o.space[0], Len: uint64(n * size)}
	h := o.header(&o.iov[0])
	h.Control, h.Controllen = &o.oob[0], uint64(unix.CmsgSpace(2))
	_, e := o.patiently(func() (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(o.fd), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT)
		return r, e
	})
	return e
}

// each sends the packets from i to n as they are, and says how many went.
func (o *outgoing) each(i, n, size int) (int, unix.Errno) {
	for j := i; j < n; j++ {
		o.iov[j] = unix.Iovec{Base: &o.space[j*size], Len: uint64(size)}
		o.msgs[j] = mmsghdr{hdr: o.header(&o.iov[j])}
	}
	r, e := o.patiently(func() (uintptr, unix.Errno) {
		r, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(o.fd), uintptr(unsafe.Pointer(&o.msgs[i])), uintptr(n-i), unix.MSG_DONTWAIT, 0, 0)
		return r, e
	})
	return int(r), e
}

// patience bounds how long a train waits for room in the socket.
const patience = 5 * time.Second

// patiently repeats what found no room, and what only reports an earlier packet's
// ICMP message. The runtime is not told of the calls: they do not block, and to
// hand the thread's P back and forth would cost more than most of them.
func (o *outgoing) patiently(call func() (uintptr, unix.Errno)) (uintptr, unix.Errno) {
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
		return fmt.Errorf("packets with %d bytes of payload do not fit through this machine's own device: %w", size, e)
	case unix.EPERM, unix.EACCES:
		return fmt.Errorf("this machine's firewall refuses to send: %w", e)
	}
	return fmt.Errorf("sending a train: %w", e)
}

package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"headgate/probe"
)

// Flow is what one session sends and receives through a socket.
type Flow struct {
	socket  *Socket
	session uint64
	peer    netip.AddrPort

	// The train that comes in, under the socket's lock. Trains are numbered from 1.
	train    uint32
	count    int
	arrivals []arrival
	seen     []uint64 // one bit a packet
	distinct int
	last     bool // its last packet has come
	latest   time.Time
	overflow uint32
	news     chan struct{}
}

type arrival struct {
	order  uint64
	packet uint32
	at     int64
}

// most is how many arrivals of one train are kept: what a hostile sender may make
// of our memory.
const most = 4 << 20

// Join makes a flow of a session with a peer. Forget ends it.
func (s *Socket) Join(session uint64, peer netip.AddrPort) *Flow {
	f := &Flow{socket: s, session: session, peer: peer, news: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flows[session] = f
	return f
}

// Forget ends a flow.
func (s *Socket) Forget(f *Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flows, f.session)
}

// Expect begins the collection of a train of count packets. What came of it before
// is kept: data may overtake what announces it.
func (f *Flow) Expect(train uint32, count int) {
	f.socket.mu.Lock()
	defer f.socket.mu.Unlock()
	f.begin(train)
	f.count = count
	f.tellIfDone()
}

// begin makes train the one that is collected, if it is newer.
func (f *Flow) begin(train uint32) {
	if train <= f.train {
		return
	}
	f.train, f.count, f.last = train, 0, false
	f.arrivals, f.seen, f.distinct = nil, nil, 0
	f.latest = time.Now()
	f.overflow = f.socket.overflow
}

func (f *Flow) see(packet uint32) {
	word, bit := int(packet/64), uint64(1)<<(packet%64)
	if packet >= most {
		return
	}
	if word >= len(f.seen) {
		f.seen = append(f.seen, make([]uint64, word+1-len(f.seen))...)
	}
	if f.seen[word]&bit == 0 {
		f.seen[word] |= bit
		f.distinct++
	}
}

func (f *Flow) tellIfDone() {
	if f.count > 0 && f.distinct >= f.count {
		f.tell()
	}
}

func (f *Flow) tell() {
	select {
	case f.news <- struct{}{}:
	default:
	}
}

// glance is how often a socket is looked at while a train comes in: nothing waits for
// its packets, so that none of them has to wake anything up. Without a train a thread
// waits for as long as rest.
const (
	glance = time.Millisecond
	rest   = 100 * time.Millisecond
)

// incoming is room for what one call gives.
type incoming struct {
	msgs    [atOnce]mmsghdr
	iovs    [atOnce]unix.Iovec
	headers [atOnce][headerSize]byte
	oobs    [atOnce][128]byte
	names   [atOnce][unix.SizeofSockaddrInet6]byte
}

// read takes in what comes until the socket is closed. Only the header is copied
// out of the kernel: the rest says nothing.
func (s *Socket) read() {
	defer unix.Close(s.fd)
	in := &incoming{}
	for !s.closed.Load() {
		n, e := in.take(s.fd)
		for i := range n {
			s.accept(in, i)
		}
		switch {
		case n > 0 || e == unix.EINTR || reported(e):
		case e != unix.EAGAIN:
			s.end(fmt.Errorf("the UDP socket: %w", e))
			return
		case s.expects():
			time.Sleep(glance)
		default:
			fds := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
			unix.Poll(fds[:], int(rest/time.Millisecond))
		}
	}
}

// take is one recvmmsg that does not wait.
func (in *incoming) take(fd int) (int, unix.Errno) {
	for i := range in.msgs {
		in.iovs[i] = unix.Iovec{Base: &in.headers[i][0], Len: headerSize}
		in.msgs[i] = mmsghdr{hdr: unix.Msghdr{
			Name: &in.names[i][0], Namelen: unix.SizeofSockaddrInet6, Iov: &in.iovs[i], Iovlen: 1,
			Control: &in.oobs[i][0], Controllen: uint64(len(in.oobs[i])),
		}}
	}
	n, _, e := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptrOf(&in.msgs), atOnce, unix.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// reported tells whether an error is an ICMP message that came for an earlier packet:
// the peer is not there, or not yet, and that is no reason to stop.
func reported(e unix.Errno) bool {
	switch e {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EMSGSIZE:
		return true
	}
	return false
}

// expects tells whether a train is on its way.
func (s *Socket) expects() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.flows {
		if f.distinct < f.count {
			return true
		}
	}
	return false
}

func (s *Socket) accept(in *incoming, i int) {
	m := &in.msgs[i]
	h, ok := ParseHeader(in.headers[i][:min(int(m.n), headerSize)])
	if !ok {
		return
	}
	at, dropped := ancillary(in.oobs[i][:m.hdr.Controllen])
	if h.Kind != Data {
		if s.heard != nil {
			s.heard(s, Heard{h, named(&in.names[i]), at})
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.overflow = max(s.overflow, dropped)
	f := s.flows[h.Session]
	if f == nil {
		return
	}
	f.begin(h.Train)
	if h.Train != f.train || len(f.arrivals) >= most {
		return
	}
	f.arrivals = append(f.arrivals, arrival{s.order, h.Packet, at})
	s.order++
	f.see(h.Packet)
	f.latest = time.Now()
	f.last = f.last || f.count > 0 && int(h.Packet) == f.count-1
	f.tellIfDone()
}

// ancillary reads the kernel's stamp and the count of what the socket dropped. The
// messages are walked by hand: the library's way allocates for each packet.
func ancillary(b []byte) (at int64, dropped uint32) {
	const head = unix.SizeofCmsghdr
	for len(b) >= head {
		size := int(binary.NativeEndian.Uint64(b))
		level, kind := int32(binary.NativeEndian.Uint32(b[8:])), int32(binary.NativeEndian.Uint32(b[12:]))
		if size < head || size > len(b) {
			break
		}
		data := b[head:size]
		switch {
		case level != unix.SOL_SOCKET:
		case kind == unix.SCM_TIMESTAMPNS && len(data) >= 16:
			at = int64(binary.NativeEndian.Uint64(data))*1e9 + int64(binary.NativeEndian.Uint64(data[8:]))
		case kind == unix.SO_RXQ_OVFL && len(data) >= 4:
			dropped = binary.NativeEndian.Uint32(data)
		}
		b = b[min((size+7)&^7, len(b)):]
	}
	return at, dropped
}

// Received is what came of a train.
type Received struct {
	Arrived []probe.Arrival
	// Order is each arrival's place among all that came through the socket.
	Order []uint64
	// Overflow is how many packets, of anyone, the socket dropped meanwhile.
	Overflow int
}

// How long a collection waits for what does not come: Quiet after the last arrival,
// which is longer than a virtual machine sleeps (120 ms at most in the estimation
// seed, 4.4.2); After once the train's last packet is there, since then only what was
// overtaken is missing.
const (
	Quiet = 250 * time.Millisecond
	After = 30 * time.Millisecond
)

// Collect waits until all of a train has come, or nothing has for a while, or ctx is
// done. The sender has ended when it is called.
func (f *Flow) Collect(ctx context.Context, train uint32, count int) (Received, error) {
	f.Expect(train, count)
	called := time.Now()
	for {
		wait, done, err := f.waiting(called)
		if err != nil {
			return Received{}, err
		}
		if done {
			break
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return Received{}, context.Cause(ctx)
		case <-f.news:
		case <-t.C:
		}
		t.Stop()
	}
	s := f.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Received{Overflow: int(s.overflow - f.overflow)}
	for _, a := range f.arrivals {
		if int(a.packet) < count {
			r.Arrived = append(r.Arrived, probe.Arrival{Number: int(a.packet), At: a.at})
			r.Order = append(r.Order, a.order)
		}
	}
	f.arrivals, f.count = nil, 0 // nothing is expected any more
	return r, nil
}

// waiting is how long the collection waits at least, or that it is over.
func (f *Flow) waiting(called time.Time) (time.Duration, bool, error) {
	f.socket.mu.Lock()
	defer f.socket.mu.Unlock()
	if f.socket.err != nil {
		return 0, false, f.socket.err
	}
	if f.distinct >= f.count {
		return 0, true, nil
	}
	patience := Quiet
	if f.last {
		patience = After
	}
	since := f.latest
	if !f.last && called.After(since) {
		since = called
	}
	wait := time.Until(since.Add(patience))
	return wait, wait <= 0, nil
}

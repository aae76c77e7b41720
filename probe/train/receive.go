package train

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/probe"
)

// Flow is the sending and receiving of one session on a socket.
type Flow struct {
	socket  *Socket
	session uint64
	peer    netip.AddrPort

	// The fields of the train that is being received, guarded by the socket's lock.
	// Trains are numbered from 1.
	train    uint32
	count    int
	arrivals []arrival
	seen     []uint64 // one bit for each packet
	distinct int
	last     bool // its last packet has arrived
	latest   time.Time
	overflow uint32
	ready    chan struct{}
}

type arrival struct {
	order  uint64
	packet uint32
	at     int64
}

// maxArrivals is the maximum number of arrivals kept of one train. It bounds the memory that a
// hostile sender can use.
const maxArrivals = 4 << 20

// Join creates the flow of a session with a peer. Remove removes it.
func (s *Socket) Join(session uint64, peer netip.AddrPort) *Flow {
	f := &Flow{socket: s, session: session, peer: peer, ready: make(chan struct{}, 1)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flows[session] = f
	return f
}

// Remove removes a flow.
func (s *Socket) Remove(f *Flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.flows, f.session)
}

// Begin starts the collection of a train of count packets. Packets of the train that
// arrived before are kept, since data may arrive before the message that announces it.
func (f *Flow) Begin(train uint32, count int) {
	f.socket.mu.Lock()
	defer f.socket.mu.Unlock()
	f.begin(train)
	f.count = count
	f.tellIfDone()
}

// begin makes train the current train, if it is newer.
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
	if packet >= maxArrivals {
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
		f.notify()
	}
}

func (f *Flow) notify() {
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// pollInterval is the interval at which a socket is polled while a train arrives. Polling
// avoids that each packet wakes a thread. Without a train, a thread waits in poll(2) for up
// to idlePoll.
const (
	pollInterval = time.Millisecond
	idlePoll     = 100 * time.Millisecond
)

// incoming has the buffers of one recvmmsg call.
type incoming struct {
	msgs    [atOnce]mmsghdr
	iovs    [atOnce]unix.Iovec
	headers [atOnce][headerSize]byte
	oobs    [atOnce][128]byte
	names   [atOnce][unix.SizeofSockaddrInet6]byte
}

// read receives packets until the socket is closed. Only the header is copied from the
// kernel; the payload is random.
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
			s.end(fmt.Errorf("cannot receive from UDP socket: %w", e))
			return
		case s.expects():
			time.Sleep(pollInterval)
		default:
			fds := [1]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}
			unix.Poll(fds[:], int(idlePoll/time.Millisecond))
		}
	}
}

// take calls recvmmsg without waiting.
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

// reported tells whether an error is from an ICMP message about an earlier packet. The
// peer is unreachable, possibly only for now, and the socket remains usable.
func reported(e unix.Errno) bool {
	switch e {
	case unix.ECONNREFUSED, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EMSGSIZE:
		return true
	}
	return false
}

// expects reports whether a train is being received.
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
		if s.onDatagram != nil {
			s.onDatagram(s, Datagram{h, named(&in.names[i]), at})
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
	if h.Train != f.train || len(f.arrivals) >= maxArrivals {
		return
	}
	f.arrivals = append(f.arrivals, arrival{s.order, h.Packet, at})
	s.order++
	f.see(h.Packet)
	f.latest = time.Now()
	f.last = f.last || f.count > 0 && int(h.Packet) == f.count-1
	f.tellIfDone()
}

// ancillary parses the kernel's timestamp and the count of packets that the socket
// dropped. It parses the control messages itself, because unix.ParseSocketControlMessage
// allocates for each packet.
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

// Received is the result of a train.
type Received struct {
	Arrived []probe.Arrival
	// Order is the position of each arrival among all arrivals at the socket.
	Order []uint64
	// Overflow is the number of packets, of any sender, that the socket dropped during
	// the train.
	Overflow int
}

// How long a collection waits for missing packets. ArrivalTimeout counts from the last
// arrival. It is longer than a virtual machine is descheduled (at most 120 ms in the
// estimation seed, 4.4.2). ReorderTimeout counts from the last arrival once the train's last
// packet has arrived: only reordered packets can still arrive after that.
const (
	ArrivalTimeout = 250 * time.Millisecond
	ReorderTimeout = 30 * time.Millisecond
)

// Collect waits until all packets of a train have arrived, none has arrived for a while,
// or ctx is done. It must be called after the sender has sent the last packet.
func (f *Flow) Collect(ctx context.Context, train uint32, count int) (Received, error) {
	f.Begin(train, count)
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
		case <-f.ready:
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
	f.arrivals, f.count = nil, 0 // no train is expected
	return r, nil
}

// waiting returns how long the collection still waits, or true if the collection is
// complete.
func (f *Flow) waiting(called time.Time) (time.Duration, bool, error) {
	f.socket.mu.Lock()
	defer f.socket.mu.Unlock()
	if f.socket.err != nil {
		return 0, false, f.socket.err
	}
	if f.distinct >= f.count {
		return 0, true, nil
	}
	patience := ArrivalTimeout
	if f.last {
		patience = ReorderTimeout
	}
	since := f.latest
	if !f.last && called.After(since) {
		since = called
	}
	wait := time.Until(since.Add(patience))
	return wait, wait <= 0, nil
}

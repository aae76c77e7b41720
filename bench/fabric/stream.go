package fabric

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
)

// arrivals are what a receiver got, in the order in which it arrived: sequence numbers, and times by the monotonic clock in ns.
type arrivals struct {
	seq []uint32
	at  []int64
}

// gap returns the longest time without an arrival between two times. The time until the first arrival, and that from the last
// one, count.
func (a arrivals) gap(from, to int64) time.Duration {
	longest, last := int64(0), from
	for _, at := range a.at {
		if at < from || at > to {
			continue
		}
		longest, last = max(longest, at-last), at
	}
	return time.Duration(max(longest, to-last))
}

// missing returns how many of the numbers from first to sent-1 did not arrive, and repeated how many arrived again.
func (a arrivals) missing(first, sent uint32) (missing, repeated int) {
	seen := make([]bool, sent)
	for _, s := range a.seq {
		switch {
		case s < first || s >= sent:
		case seen[s]:
			repeated++
		default:
			seen[s] = true
		}
	}
	for _, ok := range seen[min(first, sent):] {
		if !ok {
			missing++
		}
	}
	return missing, repeated
}

// reordered returns how many arrivals have a lower number than one before.
func (a arrivals) reordered() (n int) {
	highest := uint32(0)
	for i, s := range a.seq {
		if i > 0 && s < highest {
			n++
		}
		highest = max(highest, s)
	}
	return n
}

// stream is traffic from one node to another at a fixed rate. It runs until stop.
type stream struct {
	end      context.CancelFunc
	running  sync.WaitGroup
	closers  []io.Closer
	sent     atomic.Uint32
	pause    atomic.Int64 // the longest time between two turns of the sender, ns
	mu       sync.Mutex
	got      arrivals
	received uint64 // bytes of TCP
	err      error
}

// sendEvery calls send at each turn until ctx ends. It makes up for turns that were late.
func (s *stream) sendEvery(ctx context.Context, turn time.Duration, send func() error) {
	began, last := time.Now(), time.Now()
	for n := 1; ctx.Err() == nil; n++ {
		if err := send(); err != nil && ctx.Err() == nil {
			s.fail(err)
			return
		}
		if wait := time.Until(began.Add(time.Duration(n) * turn)); wait > 0 {
			time.Sleep(wait)
		}
		now := time.Now()
		s.pause.Store(max(s.pause.Load(), int64(now.Sub(last))))
		last = now
	}
}

func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}

// datagram is the size of datagrams in bytes, with 42 bytes of headers in each frame.
const datagram = 1208

// startUDP sends so many datagrams at each turn. One each millisecond is 10 Mbit/s of frames.
func startUDP(ctx context.Context, from, to *lab.Node, port uint16, each int, turn time.Duration) (_ *stream, err error) {
	a, err := to.Addr(false)
	if err != nil {
		return nil, err
	}
	in, err := listenUDP(to, netip.AddrPortFrom(a, port))
	if err != nil {
		return nil, err
	}
	var out *net.UDPConn
	err = from.Do(func() (err error) {
		out, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, port)))
		return err
	})
	if err != nil {
		in.Close()
		return nil, err
	}
	s := &stream{closers: []io.Closer{in, out}}
	ctx, s.end = context.WithCancel(ctx)
	s.running.Go(func() {
		b := make([]byte, datagram)
		s.sendEvery(ctx, turn, func() error {
			for range each {
				binary.BigEndian.PutUint32(b, s.sent.Add(1)-1)
				// A refused datagram is one that is lost: the port at the sender may be down.
				_, _ = out.Write(b)
			}
			return nil
		})
	})
	go s.receive(in)
	return s, nil
}

func listenUDP(at *lab.Node, a netip.AddrPort) (c *net.UDPConn, err error) {
	err = at.Do(func() (err error) {
		c, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(a))
		return err
	})
	if err != nil {
		return nil, err
	}
	// Above the machine's limit, so that no datagram is lost while the receiver does not run.
	var failed error
	socket, err := c.SyscallConn()
	if err == nil {
		err = socket.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
		})
	}
	if err := errors.Join(err, failed); err != nil {
		c.Close()
		return nil, fmt.Errorf("cannot enlarge the buffer of a receiver: %w", err)
	}
	return c, nil
}

func (s *stream) receive(in *net.UDPConn) {
	b := make([]byte, 2048)
	for {
		n, err := in.Read(b)
		if err != nil {
			return // it is closed
		}
		now := traffic.MonotonicNow()
		if n < 4 {
			continue
		}
		s.mu.Lock()
		s.got.seq, s.got.at = append(s.got.seq, binary.BigEndian.Uint32(b)), append(s.got.at, now)
		s.mu.Unlock()
	}
}

// startTCP sends 2,500 bytes each millisecond over one connection: 20 Mbit/s. What the sender cannot send it makes up for.
func startTCP(ctx context.Context, from, to *lab.Node, port uint16) (_ *stream, err error) {
	a, err := to.Addr(false)
	if err != nil {
		return nil, err
	}
	var l net.Listener
	if err := to.Do(func() (err error) { l, err = net.Listen("tcp", netip.AddrPortFrom(a, port).String()); return err }); err != nil {
		return nil, err
	}
	defer l.Close()
	var out net.Conn
	err = from.Do(func() (err error) {
		out, err = net.DialTimeout("tcp", netip.AddrPortFrom(a, port).String(), 10*time.Second)
		return err
	})
	if err != nil {
		return nil, err
	}
	in, err := l.Accept()
	if err != nil {
		out.Close()
		return nil, err
	}
	s := &stream{closers: []io.Closer{in, out}}
	ctx, s.end = context.WithCancel(ctx)
	s.running.Go(func() {
		b := make([]byte, 2500)
		s.sendEvery(ctx, time.Millisecond, func() error {
			_ = out.SetWriteDeadline(time.Now().Add(time.Second)) // so that it sees the end of ctx
			_, err := out.Write(b)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil
			}
			return err
		})
	})
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, err := in.Read(b)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.got.at, s.received = append(s.got.at, traffic.MonotonicNow()), s.received+uint64(n)
			s.mu.Unlock()
		}
	}()
	return s, nil
}

// stop ends the stream, after what is on the way has arrived, and returns what arrived.
func (s *stream) stop() (arrivals, error) {
	s.end()
	s.running.Wait()
	time.Sleep(200 * time.Millisecond)
	for _, c := range s.closers {
		c.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.got.at) == 0 && s.err == nil {
		return s.got, fmt.Errorf("nothing of a stream has arrived")
	}
	return s.got, s.err
}

// arrivedSince reports whether something has arrived after a time.
func (s *stream) arrivedSince(t int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.got.at) > 0 && s.got.at[len(s.got.at)-1] > t
}

//go:build vm

package labtest

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// SCTP is the transport of the experiments of the bwaas thesis (docs/seeds.md). Only a kernel with its
// module has it.

// From uapi/linux/sctp.h; package unix lacks these.
const (
	sctpNoDelay         = 3
	sctpStatus          = 14
	sctpStreamScheduler = 123
	sctpRoundRobin      = 2
	sctpSendInfo        = 2 // struct sctp_sndinfo, as a control message

	statusBytes = 176 // struct sctp_status
	statusCwnd  = 160 // congestion window of the primary path
)

const (
	// SCTPMessage fills more than half of a frame, so that no two messages share a packet.
	SCTPMessage = 1200
	// SCTPFrame is the size of a message's frame: Ethernet, IPv4, SCTP and one DATA chunk (14, 20, 12,
	// 16).
	SCTPFrame = SCTPMessage + 62
	// ahead is how much data of a stream may be in the sockets or in flight: 48 KB, so that a blocked
	// stream does not use up the send buffer of the others.
	ahead = 40
)

// stream is a stream of an association.
type stream struct {
	rate           unit.Rate // offered, in layer-2 bits per second
	sent, received atomic.Int64
}

// Association is an association of two hosts, whose streams are sent and counted until it is closed.
type Association struct {
	*testing.T
	out, in int
	streams []*stream
	stop    context.CancelFunc
	done    sync.WaitGroup
	cwnd    atomic.Int64 // bytes, as last read
}

// Associate opens an association to a port of the host to.
func Associate(t *testing.T, from, to *lab.Node, port int, rates ...unit.Rate) *Association {
	t.Helper()
	address, err := to.Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	at := &unix.SockaddrInet4{Addr: address.As4(), Port: port}
	open := func(n *lab.Node) (fd int) {
		err := n.Do(func() (err error) {
			fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
			return err
		})
		if err != nil {
			t.Fatalf("cannot open an SCTP socket: %v", err)
		}
		return fd
	}
	a := &Association{T: t, in: -1}
	for _, r := range rates {
		a.streams = append(a.streams, &stream{rate: r})
	}
	listener := open(to)
	defer unix.Close(listener)
	a.out = open(from)
	scheduler := make([]byte, 8) // struct sctp_assoc_value
	binary.NativeEndian.PutUint32(scheduler[4:], sctpRoundRobin)
	err = errors.Join(
		unix.SetsockoptInt(a.out, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 1<<20),
		unix.SetsockoptInt(a.out, unix.IPPROTO_SCTP, sctpNoDelay, 1),
		unix.Bind(listener, at), unix.Listen(listener, 1), unix.Connect(a.out, at),
		// Without a scheduler streams would wait for each other in the socket, first in, first out.
		unix.SetsockoptString(a.out, unix.IPPROTO_SCTP, sctpStreamScheduler, string(scheduler)),
	)
	if err == nil {
		a.in, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	}
	if err != nil {
		t.Fatalf("cannot open an association to port %d: %v", port, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	a.stop = stop
	a.done.Go(func() { a.send(ctx) })
	a.done.Go(func() { a.receive(ctx) })
	return a
}

// Close aborts the association (SCTP's ABORT).
func (a *Association) Close() {
	a.stop()
	a.done.Wait()
	for _, fd := range []int{a.out, a.in} {
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
		unix.Close(fd)
	}
}

// send offers each stream its rate, and does not catch up on data that the association did not accept.
func (a *Association) send(ctx context.Context) {
	buf := make([]byte, SCTPMessage)
	owed := make([]float64, len(a.streams))
	for last := time.Now(); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		now := time.Now()
		for id, s := range a.streams {
			owed[id] = min(owed[id]+float64(s.rate)*now.Sub(last).Seconds(), ahead*8*SCTPFrame)
			for ; owed[id] >= 8*SCTPFrame; owed[id] -= 8 * SCTPFrame {
				if s.sent.Load()-s.received.Load() >= ahead {
					continue
				}
				buf[0] = byte(id)
				info := make([]byte, unix.CmsgSpace(16))
				h := (*unix.Cmsghdr)(unsafe.Pointer(&info[0]))
				h.Level, h.Type = unix.IPPROTO_SCTP, sctpSendInfo
				h.SetLen(unix.CmsgLen(16))
				binary.NativeEndian.PutUint16(info[unix.CmsgLen(0):], uint16(id))
				if _, err := unix.SendmsgN(a.out, buf, info, nil, unix.MSG_DONTWAIT); err == nil {
					s.sent.Add(1)
				} else if !errors.Is(err, unix.EAGAIN) {
					a.Errorf("cannot send on stream %d: %v", id, err)
					return
				}
			}
		}
		last = now
		a.look()
	}
}

// look reads the congestion window; an association has one.
func (a *Association) look() {
	status, size := make([]byte, statusBytes), uint32(statusBytes)
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(a.out), unix.IPPROTO_SCTP, sctpStatus,
		uintptr(unsafe.Pointer(&status[0])), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 || size != statusBytes {
		a.Errorf("cannot read the association's status: %v, %d bytes", e, size)
		return
	}
	a.cwnd.Store(int64(binary.NativeEndian.Uint32(status[statusCwnd:])))
}

func (a *Association) receive(ctx context.Context) {
	buf := make([]byte, SCTPMessage)
	for ctx.Err() == nil {
		n, _, _, _, err := unix.Recvmsg(a.in, buf, nil, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			time.Sleep(5 * time.Millisecond)
		case err != nil || n != SCTPMessage:
			a.Errorf("cannot receive: %d bytes, %v", n, err)
			return
		default:
			a.streams[buf[0]].received.Add(1)
		}
	}
}

// Delivered returns the rates that the streams of some associations deliver during a time, in layer-2
// bits per second, and the mean of the congestion windows, in bytes.
func Delivered(over time.Duration, list ...*Association) (got []float64, cwnd []int64) {
	var before []int64
	for _, a := range list {
		for _, s := range a.streams {
			before = append(before, s.received.Load())
		}
	}
	start := time.Now()
	cwnd = make([]int64, len(list))
	looks := int64(0)
	for ; time.Since(start) < over; time.Sleep(50 * time.Millisecond) {
		for i, a := range list {
			cwnd[i] += a.cwnd.Load()
		}
		looks++
	}
	seconds := time.Since(start).Seconds()
	for i, a := range list {
		cwnd[i] /= looks
		for _, s := range a.streams {
			got = append(got, float64(s.received.Load()-before[len(got)])*8*SCTPFrame/seconds)
		}
	}
	return got, cwnd
}

package fabric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/lab"
)

// raw is a packet socket (packet(7)) at a host's device, which sends and receives whole frames.
type raw struct {
	fd      int
	mac     net.HardwareAddr
	end     sync.WaitGroup
	closing atomic.Bool
}

const ethAll = unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 // in network byte order

// openRaw opens a socket at a host's only device. on is called with each frame that arrives, but not with those that the host
// sends; nil receives none.
func openRaw(n *lab.Node, on func(frame []byte)) (r *raw, err error) {
	r = &raw{}
	err = n.Do(func() error {
		all, err := net.Interfaces()
		if err != nil {
			return err
		}
		i := slices.IndexFunc(all, func(i net.Interface) bool {
			return i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 && len(i.HardwareAddr) == 6
		})
		if i < 0 {
			return fmt.Errorf("host %s has no device", n.Name)
		}
		protocol := 0
		if on != nil {
			protocol = ethAll
		}
		r.mac = all[i].HardwareAddr
		if r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol); err != nil {
			return fmt.Errorf("cannot open a packet socket: %w", err)
		}
		// A receiver sees the end of the socket after this time.
		if err := unix.SetsockoptTimeval(r.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err != nil {
			return err
		}
		_ = unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20)
		return unix.Bind(r.fd, &unix.SockaddrLinklayer{Protocol: uint16(protocol), Ifindex: all[i].Index})
	})
	if err != nil {
		return nil, err
	}
	if on == nil {
		return r, nil
	}
	fd := r.fd
	r.end.Go(func() {
		b := make([]byte, 2048)
		for {
			n, from, err := unix.Recvfrom(fd, b, 0)
			if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
				if r.closing.Load() {
					return
				}
				continue
			}
			if err != nil {
				return
			}
			if at, ok := from.(*unix.SockaddrLinklayer); ok && at.Pkttype == unix.PACKET_OUTGOING {
				continue
			}
			on(b[:n])
			if r.closing.Load() {
				return
			}
		}
	})
	return r, nil
}

// send sends a frame.
func (r *raw) send(frame []byte) error {
	_, err := unix.Write(r.fd, frame)
	return err
}

func (r *raw) close() {
	r.closing.Store(true)
	r.end.Wait()
	unix.Close(r.fd)
}

// The frames of this bench: an EtherType for local experiments (IEEE 802-2014, clause 9.2.4), a mark, the sender and a number.
const (
	etherExperiment = 0x88b5
	mark            = "HGBC"
)

// numbered returns a frame with the number of its sender and its own.
func numbered(dst, src net.HardwareAddr, sender, n uint32) []byte {
	b := append(append([]byte{}, dst...), src...)
	b = binary.BigEndian.AppendUint16(b, etherExperiment)
	b = append(b, mark...)
	b = binary.BigEndian.AppendUint32(b, sender)
	b = binary.BigEndian.AppendUint32(b, n)
	return append(b, make([]byte, max(60-len(b), 0))...)
}

// readNumbered reads what numbered has made.
func readNumbered(b []byte) (sender, n uint32, ok bool) {
	if len(b) < 26 || binary.BigEndian.Uint16(b[12:]) != etherExperiment || string(b[14:18]) != mark {
		return 0, 0, false
	}
	return binary.BigEndian.Uint32(b[18:]), binary.BigEndian.Uint32(b[22:]), true
}

// copyKey is a broadcast at a receiver.
type copyKey struct {
	at        int
	sender, n uint32
}

// tally is how often each broadcast arrived at each receiver.
type tally map[copyKey]int

// count compares a tally with what was sent: n broadcasts from each of the hosts 1 to hosts. extra are copies after the first,
// and those at the sender; lost are broadcasts that did not arrive at another host; most is the most copies at a host.
func (t tally) count(hosts int, n uint32) (extra, lost, most int) {
	for at := 1; at <= hosts; at++ {
		for sender := 1; sender <= hosts; sender++ {
			for i := range n {
				copies := t[copyKey{at, uint32(sender), i}]
				most = max(most, copies)
				switch {
				case at == sender:
					extra += copies
				case copies == 0:
					lost++
				default:
					extra += copies - 1
				}
			}
		}
	}
	return extra, lost, most
}

// stormCopies is how many copies of a broadcast at a port are a storm: a loop makes thousands of them.
const stormCopies = 10

// storms returns how many broadcasts have arrived at some host as often as in a storm.
func (t tally) storms() int {
	all := map[[2]uint32]bool{}
	for k, copies := range t {
		if copies >= stormCopies {
			all[[2]uint32{k.sender, k.n}] = true
		}
	}
	return len(all)
}

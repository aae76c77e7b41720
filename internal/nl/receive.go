package nl

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// datagramSize is the size of the buffer for a datagram. The kernel fills datagrams of a dump up to
// 32 KB if the reader's buffer is large enough (net/netlink/af_netlink.c, netlink_dump), and a dump
// of qdiscs iterates over all earlier qdiscs again for each datagram: with pages of 4 KB, 16,000
// qdiscs took 0.3 s.
const datagramSize = 64 << 10

// ownPorts has the ports of the most recent sockets of this process, by which Own recognizes its own
// changes. Older ports are dropped, because the kernel reuses ports.
var ownPorts struct {
	sync.Mutex
	ports [1024]uint32
	next  int
}

// IsOwnPort reports whether a notification was caused by a Conn of this process. port is the port of the
// requesting socket, which the notification contains.
func IsOwnPort(port uint32) bool {
	ownPorts.Lock()
	defer ownPorts.Unlock()
	return port != 0 && slices.Contains(ownPorts.ports[:], port)
}

func addOwnPort(port uint32) {
	ownPorts.Lock()
	defer ownPorts.Unlock()
	ownPorts.ports[ownPorts.next%len(ownPorts.ports)] = port
	ownPorts.next++
}

// message is one netlink message as received.
type message struct {
	kind     uint16
	flags    netlink.HeaderFlags
	sequence uint32
	raw      []byte // including the header
}

func (m message) payload() []byte { return m.raw[unix.NLMSG_HDRLEN:] }

// receive reads one datagram. It does not use netlink.Conn.Receive, which reads in small pieces and
// returns only the first error, so that later errors cannot be matched with their requests.
func (c *Conn) receive() ([]message, error) {
	raw, err := c.c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("cannot read from netlink: %w", err)
	}
	buf := make([]byte, datagramSize)
	var n int
	var rerr error
	err = raw.Read(func(fd uintptr) bool {
		n, _, rerr = unix.Recvfrom(int(fd), buf, unix.MSG_DONTWAIT)
		return rerr != unix.EAGAIN
	})
	if err == nil {
		err = rerr
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read from netlink: %w", err)
	}
	var out []message
	for b := buf[:n]; len(b) >= unix.NLMSG_HDRLEN; {
		length := int(binary.NativeEndian.Uint32(b[0:4]))
		if length < unix.NLMSG_HDRLEN || length > len(b) {
			return nil, fmt.Errorf("invalid netlink message of %d bytes in a datagram of %d bytes", length, n)
		}
		out = append(out, message{
			kind: binary.NativeEndian.Uint16(b[4:6]), flags: netlink.HeaderFlags(binary.NativeEndian.Uint16(b[6:8])), sequence: binary.NativeEndian.Uint32(b[8:12]), raw: b[:length],
		})
		b = b[min(len(b), (length+3)&^3):]
	}
	return out, nil
}

// ack parses the kernel's response to a request: errno 0 is success, and ext is the
// kernel's error message, if any.
func (m message) ack() (errno unix.Errno, ext string) {
	if len(m.raw) < unix.NLMSG_HDRLEN+4 {
		return 0, ""
	}
	errno = unix.Errno(-int32(binary.NativeEndian.Uint32(m.raw[16:20])))
	if m.flags&netlink.AcknowledgeTLVs == 0 || len(m.raw) < 36 {
		return errno, ""
	}
	// The failed request follows, complete unless it was capped, then the attributes.
	at := 20 + unix.NLMSG_HDRLEN
	if m.flags&netlink.Capped == 0 {
		at = 20 + int(binary.NativeEndian.Uint32(m.raw[20:24]))
	}
	if at = (at + 3) &^ 3; at > len(m.raw) {
		return errno, ""
	}
	ad, err := netlink.NewAttributeDecoder(m.raw[at:])
	if err != nil {
		return errno, ""
	}
	const nlmsgerrAttrMsg = 1 // uapi/linux/netlink.h
	for ad.Next() {
		if ad.Type() == nlmsgerrAttrMsg {
			ext = ad.String()
		}
	}
	return errno, ext
}

package nl

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// datagramSize is what we offer the kernel at a time. It fills a dump up to
// 32 KB a datagram if the reader offers as much (net/netlink/af_netlink.c,
// netlink_dump), and a dump of qdiscs walks all earlier ones again for each
// datagram: with pages of 4 KB, 16,000 of them took 0.3 s.
const datagramSize = 64 << 10

// own are the ports of the latest sockets of this process (and not of all, because the kernel gives
// a port to others once it is free), by which Own knows what it did itself.
var own struct {
	sync.Mutex
	ports [1024]uint32
	next  int
}

// Own tells whether a notification, which names the port of whose request brought it about, is of
// what this process did through a Conn.
func Own(port uint32) bool {
	own.Lock()
	defer own.Unlock()
	return port != 0 && slices.Contains(own.ports[:], port)
}

func remember(port uint32) {
	own.Lock()
	defer own.Unlock()
	own.ports[own.next%len(own.ports)] = port
	own.next++
}

// message is one netlink message as it came.
type message struct {
	kind     uint16
	flags    netlink.HeaderFlags
	sequence uint32
	raw      []byte // with its header
}

func (m message) payload() []byte { return m.raw[unix.NLMSG_HDRLEN:] }

// receive reads one datagram. It reads the socket itself, because
// netlink.Conn.Receive takes small bites and turns the first error into its
// result, and so loses which request the later ones belong to.
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
			return nil, fmt.Errorf("netlink sent a message of %d bytes in a datagram of %d", length, n)
		}
		out = append(out, message{
			kind: binary.NativeEndian.Uint16(b[4:6]), flags: netlink.HeaderFlags(binary.NativeEndian.Uint16(b[6:8])), sequence: binary.NativeEndian.Uint32(b[8:12]), raw: b[:length],
		})
		b = b[min(len(b), (length+3)&^3):]
	}
	return out, nil
}

// acknowledgement reads the kernel's word on a request: 0 if it was done, and
// the kernel's own explanation if it gave one.
func (m message) acknowledgement() (errno unix.Errno, ext string) {
	if len(m.raw) < unix.NLMSG_HDRLEN+4 {
		return 0, ""
	}
	errno = unix.Errno(-int32(binary.NativeEndian.Uint32(m.raw[16:20])))
	if m.flags&netlink.AcknowledgeTLVs == 0 || len(m.raw) < 36 {
		return errno, ""
	}
	// The failed request follows, whole unless it was capped, then the attributes.
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

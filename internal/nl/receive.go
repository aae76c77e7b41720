package nl

import (
	"encoding/binary"
	"fmt"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nlenc"
	"golang.org/x/sys/unix"
)

// reply is the kernel's word on one request.
type reply struct {
	sequence uint32
	errno    unix.Errno
	ext      string
}

// Attribute types of an extended acknowledgement (uapi/linux/netlink.h).
const nlmsgerrAttrMsg = 1

// receive reads one datagram of acknowledgements. It reads the socket itself,
// because netlink.Conn.Receive turns the first error into its result and so
// loses which request the later ones belong to.
func (c *Conn) receive() ([]reply, error) {
	raw, err := c.c.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("cannot read from netlink: %w", err)
	}
	buf := make([]byte, 64<<10)
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
	var out []reply
	for b := buf[:n]; len(b) >= unix.NLMSG_HDRLEN; {
		length := int(nlenc.Uint32(b[0:4]))
		if length < unix.NLMSG_HDRLEN || length > len(b) {
			return nil, fmt.Errorf("netlink sent a message of %d bytes in a datagram of %d", length, n)
		}
		if nlenc.Uint16(b[4:6]) == unix.NLMSG_ERROR && length >= unix.NLMSG_HDRLEN+4 {
			out = append(out, parseAck(b[:length]))
		}
		b = b[min(len(b), (length+3)&^3):]
	}
	return out, nil
}

func parseAck(m []byte) reply {
	r := reply{sequence: nlenc.Uint32(m[8:12]), errno: unix.Errno(-nlenc.Int32(m[16:20]))}
	flags := netlink.HeaderFlags(nlenc.Uint16(m[6:8]))
	if flags&netlink.AcknowledgeTLVs == 0 || len(m) < 36 {
		return r
	}
	// The failed request follows, whole unless it was capped, then the attributes.
	at := 20 + unix.NLMSG_HDRLEN
	if flags&netlink.Capped == 0 {
		at = 20 + int(binary.NativeEndian.Uint32(m[20:24]))
	}
	if at = (at + 3) &^ 3; at > len(m) {
		return r
	}
	ad, err := netlink.NewAttributeDecoder(m[at:])
	if err != nil {
		return r
	}
	for ad.Next() {
		if ad.Type() == nlmsgerrAttrMsg {
			r.ext = ad.String()
		}
	}
	return r
}

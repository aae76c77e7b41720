package wire

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// maxFrame is the largest read: a super-packet of 64 KB with its Ethernet header, two VLAN tags and
// the vnet header, rounded up.
const maxFrame = 66_000

// maxHeader holds the largest headers of a super-packet: Ethernet with two tags, IPv6 with some
// extensions, TCP with all options.
const maxHeader = vnetHeader + 256

// struct virtio_net_hdr (linux/virtio_net.h), in the machine's byte order.
const (
	vnetFlags, vnetType, vnetHeaderLen, vnetSegment, vnetSumStart, vnetSumOffset = 0, 1, 2, 4, 6, 8
	// vnetHeader is its size; it precedes every frame.
	vnetHeader = 10

	needsSum = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM: the checksum field has the sum of the pseudo-header
	gsoTCP4  = 1
	gsoTCP6  = 4
	gsoUDP   = 5    // UDP_L4: datagrams of one size, the last may be shorter
	gsoECN   = 0x80 // with TCP: the first segment has CWR
)

// kind of a frame's network layer.
type kind uint8

const (
	other kind = iota
	ipv4
	ipv6
)

// frame is the parsed form of one frame; it is small, because a ring holds many. Offsets are from the
// Ethernet header on.
type frame struct {
	size int32 // layer-2 bytes, as one frame
	// segments is the number of segments on a wire; 1 without a super-packet.
	segments uint16
	// step is the payload of each segment but the last.
	step uint16
	// network and transport are the offsets of these headers, body is that of a super-packet's
	// payload.
	network, transport, body uint16
	kind                     kind
	gso                      uint8 // gsoTCP4, gsoTCP6, gsoUDP or 0
	dscp, ecn                uint8
}

// parse parses a frame that follows its vnet header. An unknown frame is one segment without a code
// point.
func parse(b []byte) frame {
	e := b[vnetHeader:]
	f := frame{size: int32(len(e)), segments: 1}
	network, kind := networkLayer(e)
	f.network, f.kind = uint16(network), kind
	var minOffset int
	switch ip := e[network:]; kind {
	case ipv4:
		f.dscp, f.ecn = ip[1]>>2, ip[1]&3
		minOffset = network + int(ip[0]&15)*4
	case ipv6:
		class := ip[0]<<4 | ip[1]>>4
		f.dscp, f.ecn = class>>2, class&3
		minOffset = network + 40
	default:
		return f
	}
	gso, step := b[vnetType]&^gsoECN, int(binary.NativeEndian.Uint16(b[vnetSegment:]))
	if gso == 0 || step == 0 || b[vnetFlags]&needsSum == 0 {
		return f
	}
	// The kernel passes the offset of the transport header in csum_start; hdr_len is a hint.
	at := int(binary.NativeEndian.Uint16(b[vnetSumStart:]))
	if at < minOffset {
		return f
	}
	body, sum := at, int(binary.NativeEndian.Uint16(b[vnetSumOffset:]))
	switch {
	case gso == gsoTCP4 && kind == ipv4, gso == gsoTCP6 && kind == ipv6:
		if at+20 > len(e) || sum != 16 {
			return f
		}
		body += int(e[at+12]>>4) * 4
		if body < at+20 {
			return f
		}
	case gso == gsoUDP && sum == 6:
		body += 8
	default:
		return f
	}
	if body >= len(e) || vnetHeader+body > maxHeader {
		return f
	}
	segments := (len(e) - body + step - 1) / step
	if segments > maxSegments {
		return f
	}
	f.gso, f.step, f.segments = gso, uint16(step), uint16(segments)
	f.transport, f.body = uint16(at), uint16(body)
	return f
}

// networkLayer finds the IP header, behind up to two VLAN tags.
func networkLayer(e []byte) (at int, k kind) {
	const tag = 4
	for at = 12; at <= 12+2*tag && at+2 <= len(e); at += tag {
		ip := e[at+2:]
		switch binary.BigEndian.Uint16(e[at:]) {
		case unix.ETH_P_8021Q, unix.ETH_P_8021AD:
			continue
		case unix.ETH_P_IP:
			if len(ip) >= 20 && ip[0]>>4 == 4 && ip[0]&15 >= 5 {
				return at + 2, ipv4
			}
		case unix.ETH_P_IPV6:
			if len(ip) >= 40 && ip[0]>>4 == 6 {
				return at + 2, ipv6
			}
		}
		break
	}
	return 0, other
}

// segment returns the layer-2 size of segment i.
func (f *frame) segment(i int) int {
	if f.segments == 1 {
		return int(f.size)
	}
	return int(f.body) + f.upTo(i+1) - f.upTo(i)
}

// upTo returns the offset of the payload of segment i, or the end of the last.
func (f *frame) upTo(i int) int {
	if i == int(f.segments) {
		return int(f.size)
	}
	return int(f.body) + i*int(f.step)
}

// cut returns the segments [from, to), with CE if mark, as one frame or super-packet in two parts:
// head is built in space, which has maxHeader bytes, or empty; body is a part of b, the frame with its
// vnet header. A whole frame is marked in place. The rules are those of the kernel's own segmentation
// (tcp_gso_segment, __udp_gso_segment, inet_gso_segment).
func (f *frame) cut(b []byte, from, to int, mark bool, space []byte) (head, body []byte) {
	if from == 0 && to == int(f.segments) {
		if mark {
			f.mark(b[vnetHeader:])
		}
		return nil, b
	}
	head = space[:vnetHeader+int(f.body)]
	copy(head, b)
	body = b[vnetHeader+f.upTo(from) : vnetHeader+f.upTo(to)]
	e, transport := head[vnetHeader:], int(f.transport)
	// The checksum field has the sum of the pseudo-header, which includes the length.
	length := uint16(len(head) - vnetHeader - transport + len(body))
	before := uint16(int(f.size) - transport)
	sum := e[transport+int(binary.NativeEndian.Uint16(b[vnetSumOffset:])):]
	binary.BigEndian.PutUint16(sum, addSum(binary.BigEndian.Uint16(sum), ^before, length))
	f.setLength(e, from, int(f.body)+len(body))
	if f.gso == gsoUDP {
		binary.BigEndian.PutUint16(e[transport+4:], length)
	} else {
		f.setTCP(head, from, to)
	}
	// hdr_len is how much of what the kernel passed was contiguous. For a short super-packet from
	// another TAP that is all of it, and the kernel then rejects a cut, which is shorter
	// (tun_get_user).
	binary.NativeEndian.PutUint16(head[vnetHeaderLen:], f.body)
	if to-from == 1 {
		head[vnetType] = 0
		binary.NativeEndian.PutUint16(head[vnetSegment:], 0)
	}
	if mark {
		f.mark(e)
	}
	return head, body
}

// setLength sets the length in the network header and, for IPv4, the identification of the first
// segment.
func (f *frame) setLength(e []byte, from, size int) {
	ip := e[f.network:]
	if f.kind == ipv6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(size-int(f.network)-40))
		return
	}
	setWord(ip, 2, uint16(size-int(f.network)))
	setWord(ip, 4, binary.BigEndian.Uint16(ip[4:])+uint16(from))
}

// setTCP sets the sequence number, and clears the flags that belong only to the first or the last
// segment.
func (f *frame) setTCP(head []byte, from, to int) {
	const fin, psh, cwr = 0x01, 0x08, 0x80
	tcp := head[vnetHeader+int(f.transport):]
	binary.BigEndian.PutUint32(tcp[4:], binary.BigEndian.Uint32(tcp[4:])+uint32(from*int(f.step)))
	if from > 0 {
		tcp[13] &^= cwr
		head[vnetType] &^= gsoECN
	}
	if to < int(f.segments) {
		tcp[13] &^= fin | psh
	}
}

// mark sets CE. The transport's checksum does not cover it.
func (f *frame) mark(e []byte) {
	const ce = 3
	ip := e[f.network:]
	switch f.kind {
	case ipv4:
		setWord(ip, 0, binary.BigEndian.Uint16(ip)|ce)
	case ipv6:
		ip[1] |= ce << 4
	}
}

// setWord changes a 16-bit word of an IPv4 header and updates its checksum (RFC 1624, equation 3).
func setWord(ip []byte, at int, v uint16) {
	old := binary.BigEndian.Uint16(ip[at:])
	binary.BigEndian.PutUint16(ip[at:], v)
	binary.BigEndian.PutUint16(ip[10:], ^addSum(^binary.BigEndian.Uint16(ip[10:]), ^old, v))
}

// addSum adds in ones' complement.
func addSum(a, b, c uint16) uint16 {
	s := uint32(a) + uint32(b) + uint32(c)
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}

package groups

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"golang.org/x/sys/unix"
)

// dressed are the frames that a guest sends as control traffic of one kind: in the form of the
// protocol, from forged senders, and with data appended. The first byte of their source address
// identifies one of the guest's two groups, and the last is guestMark.
type dressed struct {
	name string
	// make returns the kind's frames of the first group.
	make func() [][]byte
}

// guestMark is the last byte of the guest's source addresses.
const guestMark = 0x77

// guestFirst are the first bytes of the source addresses in the guest's two groups; both are
// unassigned.
var guestFirst = [2]byte{2, 6}

// padded is the length of frames with appended data.
const padded = 1400

var dressedKinds = []dressed{
	{"arp", func() [][]byte {
		request := append([]byte{0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, guestMark, 10, 9, 0, 1}, 0, 0, 0, 0, 0, 0, 10, 9, 0, 2)
		answer := slices.Clone(request)
		answer[7] = 2
		return [][]byte{ethernet(broadcast, unix.ETH_P_ARP, request), ethernet(station, unix.ETH_P_ARP, answer)}
	}},
	{"dhcp", func() [][]byte {
		message := func(op byte) []byte {
			b := make([]byte, 244)
			b[0], b[1], b[2] = op, 1, 6
			copy(b[236:], []byte{0x63, 0x82, 0x53, 0x63})
			return b
		}
		any4, all4 := []byte{0, 0, 0, 0}, []byte{255, 255, 255, 255}
		return [][]byte{
			ethernet(broadcast, unix.ETH_P_IP, ipv4(unix.IPPROTO_UDP, 64, any4, all4, udp(68, 67, message(1)))),
			ethernet(station, unix.ETH_P_IP, ipv4(unix.IPPROTO_UDP, 64, here4, there4, udp(67, 68, message(2)))),
			ethernet(station, unix.ETH_P_IP, ipv4(unix.IPPROTO_UDP, 64, here4, there4, udp(67, 67, message(1)))),
		}
	}},
	{"dhcpv6", func() [][]byte {
		return [][]byte{
			ethernet([]byte{0x33, 0x33, 0, 1, 0, 2}, unix.ETH_P_IPV6, ipv6(unix.IPPROTO_UDP, 64, linkLocal6, group6(0x01, 0x02), udp(546, 547, []byte{1, 0, 0, 1}))),
			ethernet(station, unix.ETH_P_IPV6, ipv6(unix.IPPROTO_UDP, 64, linkLocal6, there6, udp(547, 546, []byte{2, 0, 0, 1}))),
		}
	}},
	{"neighbour-discovery", func() (out [][]byte) {
		for kind := byte(133); kind <= 137; kind++ { // solicitations, advertisements, redirect
			out = append(out, ethernet([]byte{0x33, 0x33, 0, 0, 0, 1}, unix.ETH_P_IPV6, ipv6(unix.IPPROTO_ICMPV6, 255, linkLocal6, group6(0, 1), icmpv6(kind))))
		}
		return out
	}},
	{"mld", func() (out [][]byte) {
		for _, kind := range []byte{131, 132, 143} {
			alert := append([]byte{unix.IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0}, icmpv6(kind)...)
			out = append(out, ethernet([]byte{0x33, 0x33, 0, 0, 0, 0x16}, unix.ETH_P_IPV6, ipv6(0, 1, linkLocal6, group6(0, 0x16), alert)))
		}
		return out
	}},
	{"igmp", func() [][]byte {
		return [][]byte{ethernet([]byte{1, 0, 0x5e, 0, 0, 0x16}, unix.ETH_P_IP, ipv4(unix.IPPROTO_IGMP, 1, here4, []byte{224, 0, 0, 22}, append([]byte{0x22}, make([]byte, 15)...)))}
	}},
	{"ack", func() [][]byte {
		return [][]byte{
			ethernet(station, unix.ETH_P_IP, ipv4(unix.IPPROTO_TCP, 64, here4, there4, ack(0))),
			ethernet(station, unix.ETH_P_IPV6, ipv6(unix.IPPROTO_TCP, 64, here6, there6, ack(0))),
		}
	}},
	{"ack-with-options", func() [][]byte {
		return [][]byte{
			ethernet(station, unix.ETH_P_IP, ipv4(unix.IPPROTO_TCP, 64, here4, there4, ack(10))),
			ethernet(station, unix.ETH_P_IPV6, ipv6(unix.IPPROTO_TCP, 64, here6, there6, ack(10))),
		}
	}},
	{"lldp", func() [][]byte {
		return [][]byte{ethernet(bridges(0x0e), 0x88cc, append([]byte{2, 7, 4, 2, 0, 0, 0, 0, guestMark}, make([]byte, 37)...))}
	}},
	{"lacp", func() [][]byte {
		return [][]byte{ethernet(bridges(2), unix.ETH_P_SLOW, append([]byte{1, 1}, make([]byte, 108)...))}
	}},
	{"eapol", func() [][]byte {
		start := []byte{2, 1, 0, 0}
		return [][]byte{ethernet(bridges(3), unix.ETH_P_PAE, start), ethernet(station, unix.ETH_P_PAE, start)}
	}},
	{"stp", func() [][]byte {
		body := append([]byte{0x42, 0x42, 3}, make([]byte, 35)...)
		return [][]byte{ethernet(bridges(0), uint16(len(body)), body)}
	}},
	{"bridges", func() [][]byte { // to an address that bridges do not forward, of an unknown protocol
		return [][]byte{ethernet(bridges(0x0d), unix.ETH_P_PAE+0x1000, make([]byte, 46))}
	}},
}

var (
	broadcast          = []byte{255, 255, 255, 255, 255, 255}
	station            = []byte{2, 0, 0, 0, 0, 0x98} // does not exist
	here4, there4      = []byte{10, 9, 0, 1}, []byte{10, 9, 0, 2}
	here6, there6      = address6(0xfd, 1), address6(0xfd, 2)
	linkLocal6         = append([]byte{0xfe, 0x80}, address6(0, 1)[2:]...)
	protocolsOfDressed = []uint16{unix.ETH_P_ARP, 0x88cc, unix.ETH_P_SLOW, unix.ETH_P_PAE, unix.ETH_P_PAE + 0x1000, unix.ETH_P_PPP_SES, unix.ETH_P_802_2, unix.ETH_P_IP, unix.ETH_P_IPV6}
)

func address6(first, last byte) []byte {
	b := make([]byte, 16)
	b[0], b[15] = first, last
	return b
}

func group6(before, last byte) []byte {
	b := address6(0xff, last)
	b[1], b[13] = 2, before
	return b
}

// bridges is an address that bridges do not forward.
func bridges(last byte) []byte { return []byte{1, 0x80, 0xc2, 0, 0, last} }

func ethernet(dst []byte, protocol uint16, body []byte) []byte {
	b := append(slices.Clone(dst), 2, 0, 0, 0, 0, guestMark)
	return append(binary.BigEndian.AppendUint16(b, protocol), body...)
}

func ipv4(protocol, ttl byte, src, dst, body []byte) []byte {
	b := make([]byte, 20)
	b[0], b[8], b[9] = 0x45, ttl, protocol
	binary.BigEndian.PutUint16(b[2:], uint16(20+len(body)))
	copy(b[12:], src)
	copy(b[16:], dst)
	return append(b, body...)
}

func ipv6(next, hops byte, src, dst, body []byte) []byte {
	b := make([]byte, 40)
	b[0], b[6], b[7] = 0x60, next, hops
	binary.BigEndian.PutUint16(b[4:], uint16(len(body)))
	copy(b[8:], src)
	copy(b[24:], dst)
	return append(b, body...)
}

func udp(from, to uint16, body []byte) []byte {
	b := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from), to)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(body)))
	return append(append(b, 0, 0), body...)
}

func icmpv6(kind byte) []byte { return append([]byte{kind}, make([]byte, 39)...) }

// ack is an acknowledgement without data, with this many words of options.
func ack(options int) []byte {
	b := make([]byte, 20+4*options)
	binary.BigEndian.PutUint16(b, 40000)
	binary.BigEndian.PutUint16(b[2:], 443)
	b[12], b[13] = byte(5+options)<<4, 0x10
	for i := 20; i < len(b); i++ {
		b[i] = 1 // no operation
	}
	return b
}

// frames returns all forms of the kind: correct, from forged senders, and with appended data.
func (d dressed) frames(random *rand.Rand) (out [][]byte) {
	for i, plain := range d.make() {
		right := slices.Clone(plain)
		right[6] = guestFirst[i%len(guestFirst)]
		out = append(out, right, append(slices.Clone(right), make([]byte, max(0, padded-len(right)))...))
		for range 50 {
			forged := slices.Clone(right)
			for k := 7; k < 11; k++ {
				forged[k] = byte(random.Uint32())
			}
			// The last bytes of an IPv4 or IPv6 source.
			switch binary.BigEndian.Uint16(plain[12:]) {
			case unix.ETH_P_IP:
				if forged[14+12] != 0 {
					forged[14+14], forged[14+15] = byte(random.Uint32()), byte(random.Uint32())
				}
			case unix.ETH_P_IPV6:
				forged[14+22], forged[14+23] = byte(random.Uint32()), byte(random.Uint32())
			}
			out = append(out, forged)
		}
	}
	return out
}

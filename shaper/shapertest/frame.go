package shapertest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
)

// frame is one packet on the wire, with the fields that rules match.
type frame struct {
	group.Packet
	bytes      []byte
	linkHeader int  // bytes before the body, tags included
	odd        bool // a property outside of group.Packet excludes it from control traffic
}

// shape has the parts of a frame that no rule matches.
type shape struct {
	payload    int  // bytes after the transport header
	ipOptions  int  // 32-bit words
	extensions int  // IPv6 destination options before the transport
	fragmented int  // number of destination options after the fragment header, inside the fragmented part
	outerTag   bool // the outermost tag is 802.1ad with Packet.VLAN, and an inner tag has VLAN 99
	tcpOptions int  // 32-bit words
	syn        bool
	more       bool // the first fragment of several
	id         uint32
}

var (
	srcMAC = [6]byte{2, 0, 0, 0, 0, 1} // of packets without a source MAC
	dstMAC = []byte{2, 0, 0, 0, 0, 2}  // not assigned: the receiver drops the packet after all hooks
)

// build returns the frame of a packet.
func build(p group.Packet, s shape) frame {
	dst := dstMAC
	var proto uint16
	var body []byte
	switch p.Link {
	case "":
		if p.Src.Is4() {
			proto, body = unix.ETH_P_IP, ipv4(p, s)
		} else {
			proto, body = unix.ETH_P_IPV6, ipv6(p, s)
		}
	case "arp":
		proto, body = unix.ETH_P_ARP, append([]byte{0, 1, 8, 0, 6, 4, 0, 1}, make([]byte, 20)...)
	case "lldp":
		dst = []byte{1, 0x80, 0xc2, 0, 0, 0x0e}
		proto, body = 0x88cc, append(append([]byte{2, 7, 4}, srcMAC[:]...), make([]byte, 37)...)
	case "lacp":
		dst = []byte{1, 0x80, 0xc2, 0, 0, 2}
		proto, body = unix.ETH_P_SLOW, append([]byte{1, 1}, make([]byte, 108)...)
	case "eapol":
		dst = []byte{1, 0x80, 0xc2, 0, 0, 3}
		proto, body = unix.ETH_P_PAE, []byte{2, 1, 0, 0}
	case "stp":
		dst = []byte{1, 0x80, 0xc2, 0, 0, 0}
		body = append([]byte{0x42, 0x42, 3}, make([]byte, 35)...)
		proto = uint16(len(body))
	default:
		n, err := strconv.ParseUint(p.Link, 0, 16)
		if err != nil {
			panic(err)
		}
		proto, body = uint16(n), make([]byte, 46)
	}
	if p.SMAC == [6]byte{} {
		p.SMAC = srcMAC
	}
	b := append(append([]byte{}, dst...), p.SMAC[:]...)
	tag := func(tpid, id uint16) { b = binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(b, tpid), id) }
	switch {
	case p.VLAN > 0 && s.outerTag:
		tag(unix.ETH_P_8021AD, uint16(p.PCP)<<13|p.VLAN)
		tag(unix.ETH_P_8021Q, 2<<13|99)
	case p.Tagged():
		tag(unix.ETH_P_8021Q, uint16(p.PCP)<<13|1<<12|p.VLAN) // with the drop eligible indicator, which no rule matches
	}
	b = binary.BigEndian.AppendUint16(b, proto)
	return frame{Packet: p, bytes: append(b, body...), linkHeader: len(b)}
}

func ipv4(p group.Packet, s shape) []byte {
	l4 := transport(p, s)
	b := make([]byte, 20+4*s.ipOptions, 20+4*s.ipOptions+len(l4))
	b[0] = 0x40 | byte(5+s.ipOptions)
	b[1] = p.DSCP << 2
	binary.BigEndian.PutUint16(b[2:], uint16(cap(b)))
	binary.BigEndian.PutUint16(b[4:], uint16(s.id))
	switch {
	case p.Fragment:
		binary.BigEndian.PutUint16(b[6:], 185)
	case s.more:
		binary.BigEndian.PutUint16(b[6:], 0x2000)
	}
	b[8], b[9] = hops(p), p.Proto
	copy(b[12:], p.Src.AsSlice())
	copy(b[16:], p.Dst.AsSlice())
	for i := 20; i < len(b); i++ {
		b[i] = 1 // no operation
	}
	return append(b, l4...)
}

func ipv6(p group.Packet, s shape) []byte {
	l4 := transport(p, s)
	next := p.Proto
	var ext []byte
	for range s.fragmented {
		if !p.Fragment { // later fragments only have its number
			ext = append([]byte{next, 0, 1, 4, 0, 0, 0, 0}, ext...)
		}
		next = 60
	}
	if p.Fragment || s.more {
		f := []byte{next, 0, 0, 0}
		switch {
		case p.Fragment:
			binary.BigEndian.PutUint16(f[2:], 185<<3)
		default:
			f[3] = 1
		}
		ext, next = append(binary.BigEndian.AppendUint32(f, s.id), ext...), 44
	}
	if memberships(p) && len(ext) == 0 {
		s.extensions = 0
		ext, next = []byte{next, 0, 5, 2, 0, 0, 1, 0}, 0 // a router alert
	}
	for range s.extensions {
		ext, next = append([]byte{next, 0, 1, 4, 0, 0, 0, 0}, ext...), 60
	}
	b := make([]byte, 40, 40+len(ext)+len(l4))
	b[0] = 0x60 | p.DSCP>>2
	b[1] = p.DSCP << 6
	binary.BigEndian.PutUint16(b[4:], uint16(len(ext)+len(l4)))
	b[6], b[7] = next, hops(p)
	copy(b[8:], p.Src.AsSlice())
	copy(b[24:], p.Dst.AsSlice())
	return append(append(b, ext...), l4...)
}

// memberships reports whether the packet is MLD.
func memberships(p group.Packet) bool {
	return p.Proto == group.ICMPv6 && (p.ICMPType >= 130 && p.ICMPType <= 132 || p.ICMPType == 143)
}

// hops returns the packet's TTL, or that prescribed by its protocol.
func hops(p group.Packet) byte {
	switch {
	case p.TTL > 0:
		return p.TTL
	case p.Proto == igmp || memberships(p):
		return 1
	case p.Proto == group.ICMPv6 && p.ICMPType >= 133 && p.ICMPType <= 137:
		return 255
	}
	return 64
}

const igmp = 2

// message returns a control message of the packet's protocol, of sufficient length.
func message(p group.Packet) []byte {
	switch {
	case p.Proto == group.UDP && p.Src.Is4() && (p.SPort == 67 || p.SPort == 68):
		b := make([]byte, 244)
		b[0], b[1], b[2] = 1, 1, 6
		if p.DPort == 68 {
			b[0] = 2
		}
		copy(b[236:], []byte{0x63, 0x82, 0x53, 0x63})
		return b
	case p.Proto == group.UDP && !p.Src.Is4() && p.SPort == 546:
		return []byte{1, 0, 0, 1}
	case p.Proto == group.UDP && !p.Src.Is4() && p.SPort == 547:
		if p.DPort == 547 {
			return []byte{12, 0, 0, 1}
		}
		return []byte{2, 0, 0, 1}
	case p.Proto == group.ICMPv6 && p.ICMPType >= 130 && p.ICMPType <= 143:
		return make([]byte, 32) // after the first eight bytes
	case p.Proto == igmp:
		return append([]byte{0x22}, make([]byte, 7)...)
	}
	return nil
}

func transport(p group.Packet, s shape) []byte {
	if p.Fragment {
		return make([]byte, max(s.payload, 8))
	}
	content := message(p)
	s.payload = max(s.payload, len(content))
	ports := func(n int) []byte {
		b := make([]byte, n+s.payload)
		copy(b[n:], content)
		binary.BigEndian.PutUint16(b, p.SPort)
		binary.BigEndian.PutUint16(b[2:], p.DPort)
		return b
	}
	switch p.Proto {
	case group.TCP:
		if p.PureAck || s.syn {
			s.payload = 0
		} else {
			s.payload = max(s.payload, 1)
		}
		b := ports(20 + 4*s.tcpOptions)
		b[12], b[13] = byte(5+s.tcpOptions)<<4, 0x10
		if s.syn {
			b[13] = 0x02
		}
		return b
	case group.UDP:
		b := ports(8)
		binary.BigEndian.PutUint16(b[4:], uint16(len(b)))
		return b
	case group.SCTP:
		b := ports(12)
		return b
	case group.ICMP, group.ICMPv6:
		b := make([]byte, 8+s.payload)
		b[0] = p.ICMPType
		return b
	}
	return append(content, make([]byte, 8+s.payload-len(content))...)
}

// sender sends frames on a device with a packet socket: they pass the device's egress hook and
// queue, and the other end's ingress.
type sender struct {
	fd   int
	to   unix.SockaddrLinklayer
	mark uint32
}

func newSender(t testing.TB, n *lab.Node, dev string) *sender {
	t.Helper()
	s := &sender{}
	err := n.Do(func() (err error) {
		i, err := net.InterfaceByName(dev)
		if err != nil {
			return err
		}
		s.to = unix.SockaddrLinklayer{Ifindex: i.Index}
		s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		return err
	})
	if err != nil {
		t.Fatalf("open a packet socket on %s: %v", dev, err)
	}
	t.Cleanup(func() { unix.Close(s.fd) })
	return s
}

func (s *sender) send(t testing.TB, f frame) {
	t.Helper()
	if f.Mark != s.mark {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_MARK, int(f.Mark)); err != nil {
			t.Fatalf("set SO_MARK: %v", err)
		}
		s.mark = f.Mark
	}
	if err := unix.Sendto(s.fd, f.bytes, 0, &s.to); err != nil {
		t.Fatalf("send %v: %v", f.Packet, err)
	}
}

// sender returns a sender for a direction.
func (s *suite) sender(in bool) *sender {
	if in {
		return newSender(s, s.router, "server")
	}
	return newSender(s, s.server, dev)
}

// seeded returns random numbers from a logged seed, so that a failure can be reproduced.
func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	if s := envSeed(); s != 0 {
		seed = s
	}
	t.Logf("random numbers from %s=%d", seedEnv, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// counts has the packets of one direction by rule, by group and of control traffic.
type counts struct {
	rules   []uint64
	groups  map[string]uint64
	control uint64
}

func (s *suite) counts(in bool) counts {
	s.Helper()
	d := direction(s.observe(), in)
	c := counts{d.RuleHits, map[string]uint64{}, d.Control.Packets}
	for _, g := range d.Groups {
		c.groups[g.Path] = g.Packets
	}
	return c
}

// minus returns the difference to earlier counts.
func (c counts) minus(o counts) counts {
	d := counts{make([]uint64, len(c.rules)), map[string]uint64{}, c.control - o.control}
	for i := range c.rules {
		d.rules[i] = c.rules[i] - o.rules[i]
	}
	for path, n := range c.groups {
		if n -= o.groups[path]; n > 0 {
			d.groups[path] = n
		}
	}
	return d
}

func (c counts) String() string {
	return fmt.Sprintf("by rule %v, by group %v, control %d", c.rules, c.groups, c.control)
}

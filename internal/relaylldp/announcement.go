package relaylldp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Announcement is what an agent says of itself.
type Announcement struct {
	Name string
	// Takes reports that the agent takes connections that arrive by this interface, whatever their destination.
	Takes bool
	// Connects reports that the agent connects to destinations with the address and port of the client.
	Connects bool
	// Leaving reports that the agent takes and connects no more.
	Leaving bool
	// Exits are the agents to which this one has streams.
	Exits []Exit
	// Ended are connections that have ended since an earlier frame. A frame with some says nothing else of the agent but its name.
	Ended []Connection
}

// Exit is an agent by its address, with what it connects to.
type Exit struct {
	Address netip.Addr
	// Ports are those to which streams go, each for a path of its own.
	Ports        []uint16
	Destinations []netip.Prefix
}

// Connection is a TCP connection as its client and its server see it.
type Connection struct{ Client, Server netip.AddrPort }

// The types of TLVs (IEEE 802.1AB-2016, table 8-1), and the subtypes of Headgate's.
const (
	tlvEnd, tlvChassis, tlvPort, tlvTTL, tlvOrganization = 0, 1, 2, 3, 127

	ofAgent, ofExit, ofEnded = 16, 17, 18
)

// prefix is Headgate's, as in its discovery frames: locally administered (IEEE 802-2014, clause 8.2).
var prefix = [3]byte{0x4a, 0x48, 0x47}

// to is the address of the nearest bridge (IEEE 802.1AB-2016, clause 7.1), which no bridge forwards.
var to = [6]byte{0x01, 0x80, 0xc2, 0, 0, 0x0e}

const (
	etherLLDP = 0x88cc
	// ttl is for how many seconds other readers of LLDP keep what a frame says.
	ttl               = 3
	maxName, maxExits = 63, 8
	// MaxEnded is how many connections fit into a frame without exits.
	MaxEnded = 20
	// maxFrame is the size of a frame without a tag.
	maxFrame = 1514
	// maxPorts, maxDestinations and endedPerTLV are as many ports, prefixes and connections as a TLV of 511 bytes holds.
	maxPorts, maxDestinations, endedPerTLV = 8, 27, 14
	addrSize                               = 16
	endSize                                = addrSize + 2
	prefixSize                             = addrSize + 1
)

// The flags of an agent.
const flagTakes, flagConnects, flagLeaving = 1, 2, 4

// Frame returns a frame that an interface sends. It is an error if the announcement does not fit into one.
func (a Announcement) Frame(from [6]byte) ([]byte, error) {
	switch {
	case !isName(a.Name):
		return nil, fmt.Errorf("%q is no name of an agent: it has 1 to %d characters of ASCII without spaces", a.Name, maxName)
	case len(a.Exits) > maxExits:
		return nil, fmt.Errorf("an agent announces up to %d exits, and not %d", maxExits, len(a.Exits))
	case len(a.Ended) > MaxEnded:
		return nil, fmt.Errorf("a frame has up to %d connections, and not %d", MaxEnded, len(a.Ended))
	}
	b := append(append([]byte{}, to[:]...), from[:]...)
	b = binary.BigEndian.AppendUint16(b, etherLLDP)
	b = appendTLV(b, tlvChassis, append([]byte{4}, from[:]...)) // MAC address (table 8-2)
	b = appendTLV(b, tlvPort, append([]byte{3}, from[:]...))    // MAC address (table 8-3)
	b = appendTLV(b, tlvTTL, []byte{0, ttl})
	flags := byte(0)
	for flag, set := range map[byte]bool{flagTakes: a.Takes, flagConnects: a.Connects, flagLeaving: a.Leaving} {
		if set {
			flags |= flag
		}
	}
	b = appendOwn(b, ofAgent, append([]byte{flags}, a.Name...))
	for _, e := range a.Exits {
		if len(e.Destinations) > maxDestinations {
			return nil, fmt.Errorf("an agent announces up to %d destinations of an exit, and not %d of %v", maxDestinations, len(e.Destinations), e.Address)
		}
		if len(e.Ports) > maxPorts {
			return nil, fmt.Errorf("an agent announces up to %d ports of an exit, and not %d of %v", maxPorts, len(e.Ports), e.Address)
		}
		ip := e.Address.As16()
		body := append(ip[:], byte(len(e.Ports)))
		for _, p := range e.Ports {
			body = binary.BigEndian.AppendUint16(body, p)
		}
		for _, d := range e.Destinations {
			body = append(body, appendPrefix(nil, d)...)
		}
		b = appendOwn(b, ofExit, body)
	}
	for some := range slices.Chunk(a.Ended, endedPerTLV) {
		var body []byte
		for _, c := range some {
			body = appendEnd(appendEnd(body, c.Client), c.Server)
		}
		b = appendOwn(b, ofEnded, body)
	}
	if b = appendTLV(b, tlvEnd, nil); len(b) > maxFrame {
		return nil, fmt.Errorf("the announcement has %d bytes, and a frame up to %d: announce fewer destinations", len(b), maxFrame)
	}
	return b, nil
}

// isName reports whether a name can be printed anywhere.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r < '!' || r > '~' })
}

func appendTLV(b []byte, kind int, value []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(kind<<9|len(value))), value...)
}

func appendOwn(b []byte, kind byte, value []byte) []byte {
	return appendTLV(b, tlvOrganization, append(append(prefix[:], kind), value...))
}

func appendEnd(b []byte, a netip.AddrPort) []byte {
	ip := a.Addr().As16()
	return binary.BigEndian.AppendUint16(append(b, ip[:]...), a.Port())
}

// appendPrefix appends a prefix, with the bits that it has as one of IPv6.
func appendPrefix(b []byte, p netip.Prefix) []byte {
	ip := p.Addr().As16()
	return append(append(b, ip[:]...), byte(p.Bits()+128-p.Addr().BitLen()))
}

var errMalformed = errors.New("a malformed announcement of a relay agent")

// Read reads a frame. ok is false for one that is no announcement; it is an error if it is one that cannot be read.
func Read(frame []byte) (a Announcement, ok bool, err error) {
	if len(frame) < 14 || len(frame) > maxFrame || binary.BigEndian.Uint16(frame[12:]) != etherLLDP {
		return a, false, nil
	}
	for b := frame[14:]; len(b) >= 2; {
		head := binary.BigEndian.Uint16(b)
		kind, size := head>>9, int(head&0x1ff)
		if len(b) < 2+size {
			break
		}
		value := b[2 : 2+size]
		b = b[2+size:]
		if kind == tlvEnd {
			break
		}
		if kind != tlvOrganization || size < 4 || [3]byte(value) != prefix {
			continue
		}
		body := value[4:]
		switch value[3] {
		case ofAgent:
			if ok || len(body) < 2 || !isName(string(body[1:])) {
				return a, true, errMalformed
			}
			ok = true
			a.Takes, a.Connects, a.Leaving = body[0]&flagTakes != 0, body[0]&flagConnects != 0, body[0]&flagLeaving != 0
			a.Name = string(body[1:])
		case ofExit:
			e, good := readExit(body)
			if !ok || !good || len(a.Exits) == maxExits {
				return a, ok, errMalformed
			}
			a.Exits = append(a.Exits, e)
		case ofEnded:
			if !ok || len(body)%(2*endSize) != 0 || len(a.Ended)+len(body)/(2*endSize) > MaxEnded {
				return a, ok, errMalformed
			}
			for ; len(body) > 0; body = body[2*endSize:] {
				a.Ended = append(a.Ended, Connection{readEnd(body), readEnd(body[endSize:])})
			}
		}
	}
	return a, ok, nil
}

func readExit(body []byte) (e Exit, ok bool) {
	if len(body) <= addrSize {
		return e, false
	}
	e.Address = netip.AddrFrom16([16]byte(body)).Unmap()
	ports := int(body[addrSize])
	if body = body[addrSize+1:]; ports > maxPorts || len(body) < 2*ports || (len(body)-2*ports)%prefixSize != 0 {
		return e, false
	}
	for range ports {
		e.Ports, body = append(e.Ports, binary.BigEndian.Uint16(body)), body[2:]
	}
	for ; len(body) > 0; body = body[prefixSize:] {
		a, bits := netip.AddrFrom16([16]byte(body)).Unmap(), int(body[addrSize])
		bits -= 128 - a.BitLen()
		if bits < 0 || bits > a.BitLen() {
			return e, false
		}
		e.Destinations = append(e.Destinations, netip.PrefixFrom(a, bits).Masked())
	}
	return e, true
}

func readEnd(b []byte) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom16([16]byte(b)).Unmap(), binary.BigEndian.Uint16(b[addrSize:]))
}

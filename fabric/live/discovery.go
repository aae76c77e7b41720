package live

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/program"
)

// A discovery frame is an LLDP frame (IEEE 802.1AB-2016, clause 8) with four TLVs of its standard and one of Headgate: the
// time at which it was made, in nanoseconds since 1970, and a code of port and time.
const (
	tlvEnd, tlvChassis, tlvPort, tlvTTL, tlvOrganization = 0, 1, 2, 3, 127
	// Subtypes "locally assigned" of a chassis id and of a port id.
	chassisLocal, portLocal = 7, 7
	codeSize                = 16
	// maxAge is how old a frame may be. The clocks of two controllers may differ by less.
	maxAge = 10 * time.Second
)

var (
	prefix       = [3]byte{0x4a, 0x48, 0x47} // locally administered (IEEE 802-2014, clause 8.2)
	errNoMAC     = errors.New("the frame is not from a controller of this network")
	errTooOld    = errors.New("the frame is too old")
	errMalformed = errors.New("no discovery frame")
)

// purpose is what a discovery frame shows: the subtype of the TLV under Headgate's prefix.
type purpose byte

// The purposes. A frame of reflection comes back from the neighbour to the port that it leaves.
const (
	ofLink purpose = iota + 1
	ofReflection
)

// discoveryFrame returns the frame that leaves a port.
func discoveryFrame(key []byte, p fabric.PortID, what purpose, now time.Time) []byte {
	about := binary.BigEndian.AppendUint64(nil, uint64(p.Switch))
	port := binary.BigEndian.AppendUint32(nil, uint32(p.Port))
	at := binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano()))
	to := program.LLDP
	if what == ofReflection {
		to = program.Reflection
	}
	b := append([]byte{}, to[:]...)
	b = append(b, 0x02, byte(p.Switch>>32), byte(p.Switch>>24), byte(p.Switch>>16), byte(p.Switch>>8), byte(p.Switch))
	b = append(b, 0x88, 0xcc)
	b = appendTLV(b, tlvChassis, append([]byte{chassisLocal}, about...))
	b = appendTLV(b, tlvPort, append([]byte{portLocal}, port...))
	b = appendTLV(b, tlvTTL, []byte{0, byte(maxAge / time.Second)})
	own := append(append([]byte{}, prefix[:]...), byte(what))
	own = append(append(own, at...), code(key, about, port, at, own[3:4])...)
	b = appendTLV(b, tlvOrganization, own)
	return appendTLV(b, tlvEnd, nil)
}

func appendTLV(b []byte, kind int, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(kind<<9|len(value)))
	return append(b, value...)
}

func code(key []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts { // all have a fixed size
		h.Write(p)
	}
	return h.Sum(nil)[:codeSize]
}

// readDiscovery returns the port that a frame has left, and its purpose.
func readDiscovery(key, frame []byte, now time.Time) (p fabric.PortID, what purpose, err error) {
	if len(frame) < 14 {
		return p, 0, errMalformed
	}
	var about, port, own []byte
	for b := frame[14:]; len(b) >= 2; {
		head := binary.BigEndian.Uint16(b)
		kind, size := int(head>>9), int(head&0x1ff)
		if len(b) < 2+size {
			return p, 0, errMalformed
		}
		value := b[2 : 2+size]
		b = b[2+size:]
		switch {
		case kind == tlvEnd:
			b = nil
		case kind == tlvChassis && size == 9 && value[0] == chassisLocal:
			about = value[1:]
		case kind == tlvPort && size == 5 && value[0] == portLocal:
			port = value[1:]
		case kind == tlvOrganization && size == 4+8+codeSize && [3]byte(value) == prefix:
			own = value[3:]
		}
	}
	if about == nil || port == nil || own == nil {
		return p, 0, errMalformed
	}
	if !hmac.Equal(own[9:], code(key, about, port, own[1:9], own[:1])) {
		return p, 0, errNoMAC
	}
	made := time.Unix(0, int64(binary.BigEndian.Uint64(own[1:])))
	if age := now.Sub(made); age > maxAge || age < -maxAge {
		return p, 0, errTooOld
	}
	p, what = fabric.PortID{Switch: fabric.DPID(binary.BigEndian.Uint64(about)), Port: fabric.PortNo(binary.BigEndian.Uint32(port))}, purpose(own[0])
	// The code does not cover all bytes, and one that was changed is a forgery, too. A reflection has another destination.
	if !bytes.HasPrefix(frame[6:], discoveryFrame(key, p, what, made)[6:]) {
		return fabric.PortID{}, 0, errNoMAC
	}
	return p, what, nil
}

// discover sends a discovery frame out of a port. n.mu must be held.
func (n *Network) discover(s *attached, no fabric.PortNo, now time.Time) {
	id := fabric.PortID{Switch: s.id, Port: no}
	if p := n.ports[id]; p != nil {
		p.sent = now
	}
	n.out(s, no, discoveryFrame(n.options.Key, id, ofLink, now))
}

// out sends a frame out of a port. n.mu must be held.
func (n *Network) out(s *attached, to fabric.PortNo, frame []byte) {
	_ = s.conn.Send(&openflow.PacketOut{Buffer: openflow.NoBuffer, InPort: openflow.PortController, Actions: openflow.Actions{openflow.Output{Port: openflow.PortNo(to)}}, Data: frame})
}

// discoverDue sends the discovery frames that are due, and finds ports that belong to hosts. n.mu must be held.
func (n *Network) discoverDue(now time.Time) {
	settled := false
	for _, s := range n.switches { // one sends out of all ports of links at once, for which one write is enough
		if now.Sub(s.discovering) >= linkInterval {
			s.discovering = now
		}
	}
	for id, p := range n.ports {
		interval := hostInterval
		switch {
		case n.isHostPort(id):
			continue
		case p.heard && n.switches[id.Switch].discovering.Equal(now):
			interval = 0
		case p.heard:
			interval = linkInterval
		case !p.ready && !n.isLinkPort(id) && now.Sub(p.since) >= settle:
			p.ready, settled = true, true
		case !p.ready:
			interval = tick
		}
		if now.Sub(p.sent) >= interval {
			n.discover(n.switches[id.Switch], id.Port, now)
		}
	}
	if settled {
		n.replan()
	}
}

// discovered takes a discovery frame that has come to a port. n.mu must be held.
func (n *Network) discovered(at fabric.PortID, frame []byte, now time.Time) {
	from, what, err := readDiscovery(n.options.Key, frame, now)
	if err != nil {
		if !errors.Is(err, errMalformed) { // LLDP of hosts is no fault
			n.counters.Forged++
			if n.noteOnce(at, now) {
				n.event(fabric.Event{Kind: fabric.LinkFaulty, Port: at, Text: "port " + at.String() + " received a discovery frame that was refused: " + err.Error()})
			}
		}
		return
	}
	if what == ofReflection {
		n.reflected(from, at, now)
		return
	}
	p := n.ports[at]
	if p == nil || n.switches[from.Switch] == nil {
		return
	}
	if n.isHostPort(at) || n.isHostPort(from) {
		n.counters.Forged++
		if n.noteOnce(at, now) {
			n.event(fabric.Event{Kind: fabric.LinkFaulty, Port: at, Text: "port " + n.label(at) + " received a discovery frame of " + n.label(from) + ", and one of the two is in host_ports: remove the cable, or the port from the list"})
		}
		return
	}
	if !p.heard {
		p.heard = true
		p.sent = time.Time{} // the other side must hear at once
		if p.ready {
			p.ready = false
			n.replan()
		}
	}
	n.rewired(n.links.Observe(from, at, now))
}

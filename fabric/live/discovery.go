package live

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
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

// frames makes and reads discovery frames. It keeps the state of the key, which takes most of the time of a code to make.
type frames struct {
	code hash.Hash
	b    []byte
}

func newFrames(key []byte) *frames { return &frames{code: hmac.New(sha256.New, key)} }

// make returns the frame that leaves a port. It is valid until another is made or read.
func (f *frames) make(p fabric.PortID, what purpose, now time.Time) []byte {
	own := append(prefix[:], byte(what))
	own = binary.BigEndian.AppendUint64(own, uint64(now.UnixNano()))
	to := program.LLDP
	if what == ofReflection {
		to = program.Reflection
	}
	b := append(f.b[:0], to[:]...)
	b = append(b, 0x02, byte(p.Switch>>32), byte(p.Switch>>24), byte(p.Switch>>16), byte(p.Switch>>8), byte(p.Switch))
	b = append(b, 0x88, 0xcc)
	b = appendTLV(b, tlvChassis, binary.BigEndian.AppendUint64([]byte{chassisLocal}, uint64(p.Switch)))
	b = appendTLV(b, tlvPort, binary.BigEndian.AppendUint32([]byte{portLocal}, uint32(p.Port)))
	b = appendTLV(b, tlvTTL, []byte{0, byte(maxAge / time.Second)})
	// The code covers the bytes before it, without the destination: a switch changes that of a reflection.
	b = appendTLV(b, tlvOrganization, append(own, make([]byte, codeSize)...))
	at := len(b) - codeSize
	f.code.Reset()
	f.code.Write(b[6:at])
	f.b = f.code.Sum(b[:at])[:at+codeSize]
	f.b = appendTLV(f.b, tlvEnd, nil)
	return f.b
}

func appendTLV(b []byte, kind int, value []byte) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(kind<<9|len(value)))
	return append(b, value...)
}

// read returns the port that a frame has left, and its purpose.
func (f *frames) read(frame []byte, now time.Time) (p fabric.PortID, what purpose, err error) {
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
	made := time.Unix(0, int64(binary.BigEndian.Uint64(own[1:])))
	p, what = fabric.PortID{Switch: fabric.DPID(binary.BigEndian.Uint64(about)), Port: fabric.PortNo(binary.BigEndian.Uint32(port))}, purpose(own[0])
	want := f.make(p, what, made)
	if len(frame) < len(want) || !hmac.Equal(want[6:], frame[6:len(want)]) {
		return fabric.PortID{}, 0, errNoMAC
	}
	if age := now.Sub(made); age > maxAge || age < -maxAge {
		return fabric.PortID{}, 0, errTooOld
	}
	return p, what, nil
}

// send sends discovery frames for a purpose out of ports of a switch, in one write. n.mu must be held.
func (n *Network) send(s *attached, now time.Time, what purpose, ports ...fabric.PortNo) {
	if len(ports) == 0 {
		return
	}
	messages := make([]openflow.Message, len(ports))
	for i, no := range ports {
		id := fabric.PortID{Switch: s.id, Port: no}
		if p := n.ports[id]; p != nil && what == ofLink {
			p.sent = now
		}
		messages[i] = packetOut(no, bytes.Clone(n.frames.make(id, what, now)))
	}
	_ = s.conn.Send(messages...)
}

// out sends a frame out of a port. n.mu must be held.
func (n *Network) out(s *attached, to fabric.PortNo, frame []byte) {
	_ = s.conn.Send(packetOut(to, frame))
}

func packetOut(to fabric.PortNo, frame []byte) *openflow.PacketOut {
	return &openflow.PacketOut{Buffer: openflow.NoBuffer, InPort: openflow.PortController, Actions: openflow.Actions{openflow.Output{Port: openflow.PortNo(to)}}, Data: frame}
}

// discoverDue sends the discovery frames that are due, and finds ports that belong to hosts. n.mu must be held.
func (n *Network) discoverDue(now time.Time) {
	settled := false
	for _, s := range n.switches {
		if now.Before(s.due) {
			continue
		}
		due := n.dueAt(s, now)
		n.send(s, now, ofLink, due.links...)
		n.send(s, now, ofReflection, due.reflections...)
		settled = settled || due.settled
	}
	if settled {
		n.replan()
	}
}

// due is out of which ports of a switch discovery frames are due, and whether a port was found to belong to hosts.
type due struct {
	links, reflections []fabric.PortNo
	settled            bool
}

// dueAt returns what is due at a switch, and sets when it has to be called again. n.mu must be held.
func (n *Network) dueAt(s *attached, now time.Time) (d due) {
	s.due = now.Add(hostInterval)
	for _, desc := range s.conn.Ports() {
		id := fabric.PortID{Switch: s.id, Port: fabric.PortNo(desc.No)}
		p := n.ports[id]
		if p == nil || n.isHostPort(id) {
			continue
		}
		up := now.Sub(p.since)
		if !p.heard && !p.ready && !n.isLinkPort(id) && up >= settle {
			p.ready, d.settled = true, true
		}
		if !now.Before(p.due) {
			reflection, link := false, true
			switch {
			case p.heard:
				mine, passes := n.reflecting(id, now)
				reflection, link = mine, !passes || now.Sub(p.sent) >= confirmInterval
				p.due = togetherAfter(now, s.id)
			case n.isLinkPort(id):
				p.due = now.Add(min(max(up, tick), linkInterval))
			default:
				p.due = now.Add(min(max(up, tick), hostInterval))
			}
			if reflection {
				d.reflections = append(d.reflections, id.Port)
			}
			if link {
				d.links = append(d.links, id.Port)
			}
		}
		if p.due.Before(s.due) {
			s.due = p.due
		}
	}
	return d
}

// togetherAfter returns the next time at which discovery frames leave all ports of links of a switch, in one write. Switches take turns. The time
// has a monotonic clock reading as now has, so that frames go on when the clock is set.
func togetherAfter(now time.Time, id fabric.DPID) time.Time {
	turn := time.Duration(id%fabric.DPID(linkInterval/tick)) * tick
	return now.Add(linkInterval - time.Duration(now.UnixNano()-int64(turn))%linkInterval)
}

// discoverNow has a discovery frame leave a port in the next tick. n.mu must be held.
func (n *Network) discoverNow(id fabric.PortID) {
	if p, s := n.ports[id], n.switches[id.Switch]; p != nil && s != nil {
		p.due, s.due = time.Time{}, time.Time{}
	}
}

// discovered takes a discovery frame that has come to a port. n.mu must be held.
func (n *Network) discovered(at fabric.PortID, frame []byte, now time.Time) {
	from, what, err := n.frames.read(frame, now)
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
		if p.ready {
			p.ready = false
			n.replan()
		}
	}
	n.rewired(n.links.Observe(from, at, now))
	if peer, ok := n.links.Peer(from); !ok || peer != at { // it must hear at once, too
		n.discoverNow(at)
	}
}

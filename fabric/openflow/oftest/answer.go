package oftest

import (
	"encoding/binary"
	"net/netip"
	"time"

	"headgate.dev/headgate/fabric/openflow"
)

// receive records a frame, and answers what is for the host.
func (h *Host) receive(data []byte, w way) {
	h.frames.count(1, float64(len(data)))
	if len(h.received) >= h.options.Keep {
		h.received = h.received[len(h.received)-h.options.Keep+1:]
	}
	h.received = append(h.received, Received{time.Now(), data, w.hops, w.id})
	p := newPacket(data, 0)
	dst := openflow.MAC(p.key.bytes(openflow.FieldEthDst))
	if dst != h.options.MAC && dst[0]&1 == 0 || p.tagged() || p.l3 == 0 {
		return
	}
	switch p.ethType() {
	case typeARP:
		h.answerARP(p)
	case typeIPv4, typeIPv6:
		h.answerICMP(p)
	}
}

func addr(p *packet, id openflow.FieldID) netip.Addr {
	a, _ := netip.AddrFromSlice(p.key.bytes(id))
	return a
}

// answerARP learns the sender of what is for the host, and answers a request (RFC 826).
func (h *Host) answerARP(p *packet) {
	sha := openflow.MAC(p.key.bytes(openflow.FieldARPSHA))
	spa, tpa := addr(p, openflow.FieldARPSPA), addr(p, openflow.FieldARPTPA)
	if !h.owns(tpa) || h.owns(spa) {
		return
	}
	h.learn(spa, sha)
	if p.key.uint(openflow.FieldARPOp) == arpRequest {
		h.send(ethernet(sha, h.options.MAC, typeARP, arp(arpReply, h.options.MAC, tpa, sha, spa)))
	}
}

// answerICMP answers pings and neighbour solicitations.
func (h *Host) answerICMP(p *packet) {
	if p.l4 == 0 || p.proto != protoICMP && p.proto != protoICMPv6 {
		return
	}
	src, dst := addr(p, openflow.FieldIPv4Src), addr(p, openflow.FieldIPv4Dst)
	if p.ethType() == typeIPv6 {
		src, dst = addr(p, openflow.FieldIPv6Src), addr(p, openflow.FieldIPv6Dst)
	}
	body := p.message()
	typ := body[0]
	target := addr(p, openflow.FieldIPv6NDTarget)
	switch {
	case p.proto == protoICMPv6 && typ == typeSolicitation && p.sll > 0 && h.owns(target) && len(body) >= 24:
		m := openflow.MAC(p.key.bytes(openflow.FieldIPv6NDSLL))
		h.learn(src, m)
		h.send(ethernet(m, h.options.MAC, typeIPv6, h.advertisement(target, src, 0x60)))
	case p.proto == protoICMPv6 && typ == typeAdvertisement && p.tll > 0:
		h.learn(target, openflow.MAC(p.key.bytes(openflow.FieldIPv6NDTLL)))
	case !h.owns(dst):
	case p.proto == protoICMP && typ == echoRequest4:
		h.route(src, icmpPacket(dst, src, echoReply4, 64, body[4:]))
	case p.proto == protoICMPv6 && typ == echoRequest6:
		h.route(src, icmpPacket(dst, src, echoReply6, 64, body[4:]))
	case p.proto == protoICMP && typ == echoReply4, p.proto == protoICMPv6 && typ == echoReply6:
		h.echoed(src, body)
	}
}

// message is the bytes of layer 4 without the padding of the frame.
func (p *packet) message() []byte {
	end := len(p.data)
	if p.ethType() == typeIPv4 {
		end = min(end, p.l3+int(binary.BigEndian.Uint16(p.data[p.l3+2:])))
	} else {
		end = min(end, p.l3+40+int(binary.BigEndian.Uint16(p.data[p.l3+4:])))
	}
	return p.data[p.l4:max(end, p.l4+4)]
}

// echoed counts the answer to a ping.
func (h *Host) echoed(from netip.Addr, body []byte) {
	if len(body) < 8 {
		return
	}
	n := int(binary.BigEndian.Uint16(body[4:]))<<16 | int(binary.BigEndian.Uint16(body[6:]))
	if n >= len(h.pings) || h.pings[n].to != from {
		return
	}
	if p := h.pings[n]; p.answers == 0 {
		p.answered = time.Now()
	}
	h.pings[n].answers++
}

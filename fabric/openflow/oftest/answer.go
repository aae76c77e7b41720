package oftest

import (
	"encoding/binary"
	"net/netip"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// receive records a frame, and answers what is for the host.
func (h *Host) receive(data []byte, w way) {
	h.frames.count(1, float64(len(data)))
	if len(h.received) >= h.options.Keep {
		h.received = h.received[len(h.received)-h.options.Keep+1:]
	}
	h.received = append(h.received, Received{time.Now(), data, w.hops, w.id})
	p := pipeline.NewPacket(data, 0)
	dst := openflow.MAC(p.Key.Bytes(openflow.FieldEthDst))
	if dst != h.options.MAC && dst[0]&1 == 0 || p.Tagged() || p.L3 == 0 {
		return
	}
	switch p.EthType() {
	case pipeline.EtherARP:
		h.answerARP(p)
	case pipeline.EtherIPv4, pipeline.EtherIPv6:
		h.answerICMP(p)
	}
}

// answerARP learns the sender of what is for the host, and answers a request (RFC 826).
func (h *Host) answerARP(p *pipeline.Packet) {
	sha := openflow.MAC(p.Key.Bytes(openflow.FieldARPSHA))
	spa, tpa := p.Addr(openflow.FieldARPSPA), p.Addr(openflow.FieldARPTPA)
	if !h.owns(tpa) || h.owns(spa) {
		return
	}
	h.learn(spa, sha)
	if p.Key.Uint(openflow.FieldARPOp) == arpRequest {
		h.send(ethernet(sha, h.options.MAC, pipeline.EtherARP, arp(arpReply, h.options.MAC, tpa, sha, spa)))
	}
}

// answerICMP answers pings and neighbour solicitations.
func (h *Host) answerICMP(p *pipeline.Packet) {
	if p.L4 == 0 || p.Proto != pipeline.ProtocolICMP && p.Proto != pipeline.ProtocolICMPv6 {
		return
	}
	src, dst := p.Addr(openflow.FieldIPv4Src), p.Addr(openflow.FieldIPv4Dst)
	if p.EthType() == pipeline.EtherIPv6 {
		src, dst = p.Addr(openflow.FieldIPv6Src), p.Addr(openflow.FieldIPv6Dst)
	}
	body := p.Message()
	typ := body[0]
	target := p.Addr(openflow.FieldIPv6NDTarget)
	switch {
	case p.Proto == pipeline.ProtocolICMPv6 && typ == pipeline.NeighbourSolicitation && p.SLL > 0 && h.owns(target) && len(body) >= 24:
		m := openflow.MAC(p.Key.Bytes(openflow.FieldIPv6NDSLL))
		h.learn(src, m)
		h.send(ethernet(m, h.options.MAC, pipeline.EtherIPv6, h.advertisement(target, src, 0x60)))
	case p.Proto == pipeline.ProtocolICMPv6 && typ == pipeline.NeighbourAdvertisement && p.TLL > 0:
		h.learn(target, openflow.MAC(p.Key.Bytes(openflow.FieldIPv6NDTLL)))
	case !h.owns(dst):
	case p.Proto == pipeline.ProtocolICMP && typ == echoRequest4:
		h.route(src, icmpPacket(dst, src, echoReply4, 64, body[4:]))
	case p.Proto == pipeline.ProtocolICMPv6 && typ == echoRequest6:
		h.route(src, icmpPacket(dst, src, echoReply6, 64, body[4:]))
	case p.Proto == pipeline.ProtocolICMP && typ == echoReply4, p.Proto == pipeline.ProtocolICMPv6 && typ == echoReply6:
		h.echoed(src, body)
	}
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

package live

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
	"headgate.dev/headgate/fabric/program"
)

// A connection whose agent is gone must end at both ends, also at one that only receives and would wait for ever. The network resets it in place of the agent. A
// reset counts only with the exact sequence number that an end expects (RFC 5961, section 3.2), which the controller does not know. So it sends each end a
// segment that cannot be of the connection. The end answers with an acknowledgement that has the number (RFC 9293, section 3.10.7.4), the switch sends that to the
// controller, and the controller answers with the reset. The controller asks several times: for some hundred milliseconds after a change Open vSwitch can send by the
// flows that it had before, from the cache of its datapath.
//
// The flows of the reset stay for a while. A client can begin another connection with the same ports meanwhile: that is decided about as any other.

// resetAsks is how often an end is asked until it has answered, at intervals of watchInterval.
const resetAsks = 6

// resetting is a connection that is being reset.
type resetting struct {
	program.Redirection
	began time.Time
	asked int
	reset [2]bool // the client, and the server
	again bool    // the client has begun another connection with the same ports
}

// resetRelayed ends the connections of an agent that is gone. n.mu must be held.
func (n *Network) resetRelayed(agent fabric.HostID) {
	for _, c := range n.redirection.relayed {
		if c.Near.HostID != agent && c.Far.HostID != agent {
			continue
		}
		n.forget(c, true, true)
		changes := map[*attached][]openflow.Message{}
		n.collect(changes, c.ResetFlows(), program.Flow.Mod)
		n.changeFlows(changes, func(error) {})
		n.redirection.resets[fabric.Connection{Client: c.Client, Server: c.Server}] = &resetting{Redirection: c.Redirection, began: time.Now()}
	}
	n.askReset()
}

// askReset asks the ends of connections that are being reset. n.mu must be held.
func (n *Network) askReset() {
	for at, c := range n.redirection.resets {
		if time.Since(c.began) > program.ResetSeconds*time.Second {
			delete(n.redirection.resets, at)
			continue
		}
		if c.asked++; c.asked > resetAsks || c.again {
			continue
		}
		if !c.reset[0] {
			n.ask(c.From, c.Beyond.MAC, c.Server, c.Client)
		}
		if !c.reset[1] {
			n.ask(c.To, c.From.MAC, c.Client, c.Server)
		}
	}
}

// ask sends a host a segment of a connection that it acknowledges. n.mu must be held.
func (n *Network) ask(h fabric.Host, as fabric.MAC, from, to netip.AddrPort) {
	if s := n.switches[h.At.Switch]; s != nil {
		n.out(s, h.At.Port, tcpSegment(h.MAC, as, h.VLAN, from, to, 0, 0, tcpACK))
	}
}

// reset answers a segment of a connection that has ended here with a reset. n.mu must be held.
func (n *Network) reset(s *attached, at fabric.PortID, data []byte) {
	g, ok := parseSegment(data)
	if !ok {
		return
	}
	t := pipeline.NewPacket(data, 0).Message()
	seq, ack, flags := binary.BigEndian.Uint32(t[4:]), binary.BigEndian.Uint32(t[8:]), t[13]
	resets := n.redirection.resets
	client, server := resets[g.Connection], resets[fabric.Connection{Client: g.Server, Server: g.Client}]
	switch {
	case client != nil && client.again || server != nil && server.again: // by the flows that the switch had before
		n.forward(at, g.frame)
		return
	case client != nil && client.From.At == at && flags&(tcpSYN|tcpACK) == tcpSYN:
		n.beginAgain(s, at, client, data)
		return
	case client != nil:
		client.reset[0] = true
	case server != nil:
		server.reset[1] = true
	}
	switch {
	case flags&tcpRST != 0:
	case flags&tcpACK != 0:
		n.out(s, at.Port, tcpSegment(g.src, g.dst, g.vlan, g.Server, g.Client, ack, 0, tcpRST))
	default: // RFC 9293, section 3.10.7.1
		length := uint32(len(t)) - uint32(t[12]>>4)*4
		if flags&tcpSYN != 0 {
			length++
		}
		n.out(s, at.Port, tcpSegment(g.src, g.dst, g.vlan, g.Server, g.Client, 0, seq+length, tcpRST|tcpACK))
	}
}

// beginAgain deletes the flows of a reset, and decides about the connection that the client begins with the same ports. n.mu must be held.
func (n *Network) beginAgain(s *attached, at fabric.PortID, c *resetting, data []byte) {
	c.again = true
	changes := map[*attached][]openflow.Message{}
	n.collect(changes, c.ResetFlows(), program.Flow.Delete)
	n.changeFlows(changes, func(error) { n.begins(s, at, data, time.Now()) }) // what a switch sends by flows that it keeps is forwarded
}

// Flags of TCP (RFC 9293, section 3.1).
const tcpSYN, tcpRST, tcpACK = 0x02, 0x04, 0x10

// tcpSegment returns a frame with a segment without data.
func tcpSegment(dst, src fabric.MAC, vlan uint16, from, to netip.AddrPort, seq, ack uint32, flags byte) []byte {
	t := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, from.Port()), to.Port())
	t = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(t, seq), ack)
	t = append(t, 5<<4, flags, 0, 0, 0, 0, 0, 0)
	a, b := from.Addr().AsSlice(), to.Addr().AsSlice()
	binary.BigEndian.PutUint16(t[16:], ^sum(uint32(len(t))+pipeline.ProtocolTCP, a, b, t))
	if from.Addr().Is6() {
		return slices.Concat(ethernet(dst, src, vlan, 0x86dd), []byte{0x60, 0, 0, 0, 0, byte(len(t)), pipeline.ProtocolTCP, 64}, a, b, t)
	}
	ip := slices.Concat([]byte{0x45, 0, 0, byte(20 + len(t)), 0, 0, 0x40, 0, 64, pipeline.ProtocolTCP, 0, 0}, a, b)
	binary.BigEndian.PutUint16(ip[10:], ^sum(0, ip))
	return slices.Concat(ethernet(dst, src, vlan, 0x0800), ip, t)
}

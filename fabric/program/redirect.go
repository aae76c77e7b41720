package program

import (
	"fmt"
	"hash/fnv"
	"net/netip"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// The flows of redirection are in no program: they come and go with connections, and end by themselves. A connection that relay agents carry has one flow at
// each of four places (relay thesis, slides "Redirecting traffic from Client to Agent 1" to "Last Flow Entry for Agent 2 to Server"):
//
//	client's port  what the client sends, to the near agent
//	near agent's   what it sends to the client, as from where the client sent to
//	far agent's    what it sends to the server, as from the client
//	server's port  what the server sends, to the far agent
//
// The thesis rewrites the addresses and ports of IP, too. Here agents use those of the client and the server themselves (transparent proxies), so that
// MACs alone are rewritten.

// Flags of TCP (RFC 9293, section 3.1): a connection begins with a segment that has SYN and not ACK.
const flagSYN, flagACK = 0x02, 0x10

// relayedIdle is after how many seconds without a packet the flows of a connection end, chosen for Headgate: agents send keepalives each 15 s.
const relayedIdle = 60

// NewConnections selects TCP connections that hosts begin. Destination says the family of addresses; what else is zero is any.
type NewConnections struct {
	Source, Destination netip.Prefix
	// Ports are those of servers.
	Ports Ports
}

// Watches reports whether a switch can tell the first segment of a connection from others.
func Watches(can fabric.Capabilities) bool {
	f := formOf(can)
	return !f.flat && f.flags
}

// Watch returns flows by which a switch sends the first segments of connections to its controller, which decides about them. They end after some
// seconds, so that connections go direct when the controller is dead.
func Watch(all []NewConnections, seconds uint16) (flows []Flow) {
	for _, one := range all {
		base := openflow.Match{openflow.EthType(etherIPv4)}
		if one.Destination.Addr().Is6() {
			base[0] = openflow.EthType(etherIPv6)
		}
		base = append(base, openflow.IPProto(protocolTCP))
		if one.Source.IsValid() && one.Source.Bits() > 0 {
			base = append(base, source(one.Source))
		}
		if one.Destination.Bits() > 0 {
			base = append(base, destination(one.Destination))
		}
		for _, m := range orAny(one.Ports) {
			match := base[:len(base):len(base)]
			if m.mask != 0 {
				match = append(match, portField(openflow.FieldTCPDst, m))
			}
			match = append(match, beginning())
			f := newFlow(false, TableRedirect, KindWatch, 0, match, "ask about connections that may be redirected", apply(toController()))
			f.HardTimeout = seconds
			flows = append(flows, f)
		}
	}
	return flows
}

// beginning matches the first segment of a connection.
func beginning() openflow.Field { return openflow.TCPFlags(flagSYN, flagSYN|flagACK) }

// Bypass returns the flow by which connections that hosts at a port begin go direct for some seconds.
func Bypass(p fabric.PortNo, ipv6 bool, seconds uint16) Flow {
	kind := openflow.EthType(etherIPv4)
	if ipv6 {
		kind = openflow.EthType(etherIPv6)
	}
	f := newFlow(false, TableRedirect, KindBypass, uint32(p), atPort(p, kind, openflow.IPProto(protocolTCP), beginning()), fmt.Sprintf("let connections of port %v go direct", p), next(TableDestination))
	f.HardTimeout = seconds
	return f
}

// Redirection is a TCP connection that two relay agents carry.
type Redirection struct {
	Client, Server netip.AddrPort
	// From is the client, To has the server's address, or is a router on the way to it, and Beyond is where the client sends.
	From, To, Beyond fabric.Host
	Near, Far        fabric.Host
}

// Number is that of the connection in the cookies of its flows.
func (r Redirection) Number() uint32 {
	h := fnv.New32a()
	fmt.Fprint(h, r.Client, r.Server)
	return h.Sum32()
}

// NearFlows returns the flows between the client and the near agent, by switch.
func (r Redirection) NearFlows() map[fabric.DPID][]Flow {
	all := map[fabric.DPID][]Flow{}
	r.add(all, r.From, r.Client, r.Server, "send what the client sends to the near relay agent", openflow.EthDst(openflow.MAC(r.Near.MAC)))
	all[r.From.At.Switch][0].Flags = openflow.FlowSendRemoved // the agents may not say that the connection has ended
	r.add(all, r.Near, r.Server, r.Client, "send what the near relay agent sends to the client", openflow.EthSrc(openflow.MAC(r.Beyond.MAC)), openflow.EthDst(openflow.MAC(r.From.MAC)))
	return all
}

// ResetSeconds is for how long what the ends of a connection send goes to the controller when an agent of it is gone, chosen for Headgate: keepalives of many
// programs come once in this time.
const ResetSeconds = 30

// ResetFlows returns the flows by which what the client and the server send goes to the controller, once NearFlows and FarFlows are deleted, by switch.
func (r Redirection) ResetFlows() map[fabric.DPID][]Flow {
	all := map[fabric.DPID][]Flow{}
	r.add(all, r.From, r.Client, r.Server, "reset the connection at the client")
	r.add(all, r.To, r.Server, r.Client, "reset the connection at the server")
	for _, flows := range all {
		for i, f := range flows {
			flows[i] = newFlow(false, TableRedirect, KindReset, r.Number(), f.Match, f.Why, apply(toController()))
			flows[i].HardTimeout = ResetSeconds
		}
	}
	return all
}

// ClientOf returns the connection of which a flow has what the client sends.
func ClientOf(m openflow.Match) fabric.Connection {
	end := func(addr4, addr6, port openflow.FieldID) netip.AddrPort {
		a, four := m.Get(addr4)
		if !four {
			a, _ = m.Get(addr6)
		}
		p, _ := m.Get(port)
		return netip.AddrPortFrom(a.Addr(), uint16(p.Uint()))
	}
	return fabric.Connection{
		Client: end(openflow.FieldIPv4Src, openflow.FieldIPv6Src, openflow.FieldTCPSrc), Server: end(openflow.FieldIPv4Dst, openflow.FieldIPv6Dst, openflow.FieldTCPDst),
	}
}

// FarFlows returns the flows between the far agent and the server, by switch.
func (r Redirection) FarFlows() map[fabric.DPID][]Flow {
	all := map[fabric.DPID][]Flow{}
	var as []openflow.Field
	if r.To.HostID == r.Beyond.HostID && r.To.VLAN == r.From.VLAN { // no router is between them
		as = []openflow.Field{openflow.EthSrc(openflow.MAC(r.From.MAC)), openflow.EthDst(openflow.MAC(r.To.MAC))}
	}
	r.add(all, r.Far, r.Client, r.Server, "send what the far relay agent sends to the server", as...)
	r.add(all, r.To, r.Server, r.Client, "send what the server sends to the far relay agent", openflow.EthDst(openflow.MAC(r.Far.MAC)))
	return all
}

// add adds the flow for what a host sends in one direction of the connection.
func (r Redirection) add(all map[fabric.DPID][]Flow, h fabric.Host, from, to netip.AddrPort, why string, set ...openflow.Field) {
	kind := openflow.EthType(etherIPv4)
	if from.Addr().Is6() {
		kind = openflow.EthType(etherIPv6)
	}
	match := atPort(h.At.Port, vlan(h.VLAN), kind, openflow.IPProto(protocolTCP), source(single(from.Addr())), destination(single(to.Addr())), openflow.TCPSrc(from.Port()), openflow.TCPDst(to.Port()))
	do := openflow.Instructions{openflow.WriteMetadata{Mask: numberMask}} // no circuit takes it along its path
	if len(set) > 0 {
		var actions openflow.Actions
		for _, f := range set {
			actions = append(actions, openflow.SetField{Field: f})
		}
		do = append(openflow.Instructions{openflow.ApplyActions{Actions: actions}}, do...)
	}
	f := newFlow(false, TableRedirect, KindRelayed, r.Number(), match, fmt.Sprintf("%s: %v to %v", why, from, to), append(do, next(TableDestination))...)
	f.IdleTimeout = relayedIdle
	all[h.At.Switch] = append(all[h.At.Switch], f)
}

// Delete returns the message that deletes a flow.
func (f Flow) Delete() *openflow.FlowMod {
	m := f.Mod()
	m.Command, m.Instructions, m.IdleTimeout, m.HardTimeout = openflow.FlowDeleteStrict, nil, 0, 0
	return m
}

func single(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

func source(p netip.Prefix) openflow.Field {
	if p.Addr().Is4() {
		return openflow.IPv4Src(p)
	}
	return openflow.IPv6Src(p)
}

func destination(p netip.Prefix) openflow.Field {
	if p.Addr().Is4() {
		return openflow.IPv4Dst(p)
	}
	return openflow.IPv6Dst(p)
}

// DeleteKind returns the message that deletes the flows of a kind in the table of redirection.
func DeleteKind(k Kind) *openflow.FlowMod {
	value, mask := OfKind(k)
	return &openflow.FlowMod{Command: openflow.FlowDelete, Table: TableRedirect, Cookie: value, CookieMask: mask, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny}
}

package oftest

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// Host is a host with one network card. It answers ARP, neighbour solicitations and pings, resolves addresses, and
// records what it receives.
type Host struct {
	n          *Network
	options    HostOptions
	wire       *direction // from the host; nil if it is not attached
	cable      *Cable
	neighbours map[netip.Addr]openflow.MAC
	waiting    map[netip.Addr]*resolution
	received   []Received
	frames     counter // received
	pings      []*Ping
}

// HostOptions describe a host.
type HostOptions struct {
	Name  string
	MAC   openflow.MAC
	Addrs []netip.Prefix // IPv4 and IPv6 addresses, with the prefix that is on the link
	// Gateways are the routers for addresses outside of the prefixes, at most one of each family.
	Gateways []netip.Addr
	// Keep is how many of the last received frames are recorded; 0 is 10,000.
	Keep int
}

// Received is a frame that a host received.
type Received struct {
	At    time.Time
	Frame []byte
	Hops  int    // switches that it has passed
	ID    uint64 // the same for all copies of a frame
}

// Ping is an echo request, and its answer.
type Ping struct {
	h        *Host
	to       netip.Addr
	sent     time.Time
	answered time.Time
	answers  int
}

// resolution is packets that wait for the Ethernet address of a neighbour.
type resolution struct {
	packets [][]byte
	tries   int
}

// Constants of hosts.
const (
	defaultKeep = 10_000
	// retry and maxTries are how often an address is asked for (RFC 4861, section 10; Linux does the same for ARP).
	retry    = time.Second
	maxTries = 3

	echoRequest4, echoReply4 = 8, 0
	echoRequest6, echoReply6 = 128, 129
)

// AddHost adds a host at a port of a switch.
func (n *Network) AddHost(o HostOptions, at End, c CableOptions) (*Host, error) {
	n.lock()
	defer n.unlock()
	h := newHost(n, o)
	if err := h.attach(at, c); err != nil {
		return nil, err
	}
	n.hosts = append(n.hosts, h)
	return h, nil
}

// newHost returns a host without a cable.
func newHost(n *Network, o HostOptions) *Host {
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	return &Host{n: n, options: o, neighbours: map[netip.Addr]openflow.MAC{}, waiting: map[netip.Addr]*resolution{}}
}

// Move takes the host from its port, and attaches it at another one.
func (h *Host) Move(at End, c CableOptions) error {
	h.n.lock()
	defer h.n.unlock()
	h.cable.setPlugged(false)
	return h.attach(at, c)
}

func (h *Host) attach(at End, o CableOptions) error {
	c, err := h.n.join(target{host: h}, target{end: at}, o)
	if err != nil {
		return fmt.Errorf("host %s: %w", h.options.Name, err)
	}
	h.cable = c
	return nil
}

// Cable returns the cable of the host. Its first end is the host.
func (h *Host) Cable() *Cable {
	h.n.lock()
	defer h.n.unlock()
	return h.cable
}

// MAC returns the Ethernet address.
func (h *Host) MAC() openflow.MAC { return h.options.MAC }

// Name returns the name.
func (h *Host) Name() string { return h.options.Name }

// Addr returns the first IPv4 address, or the first IPv6 address if six is set. It is invalid if there is none.
func (h *Host) Addr(six bool) netip.Addr {
	for _, p := range h.options.Addrs {
		if p.Addr().Is6() == six {
			return p.Addr()
		}
	}
	return netip.Addr{}
}

// Send sends a frame as it is.
func (h *Host) Send(frame []byte) {
	h.n.lock()
	defer h.n.unlock()
	h.send(append([]byte(nil), frame...))
}

func (h *Host) send(frame []byte) {
	if h.wire != nil {
		h.wire.frame(frame, way{id: h.n.newID()})
	}
}

// Announce sends what a host sends when it comes: a gratuitous ARP request and an unsolicited neighbour advertisement of
// each address.
func (h *Host) Announce() {
	h.n.lock()
	defer h.n.unlock()
	for _, p := range h.options.Addrs {
		if a := p.Addr(); a.Is4() {
			h.send(ethernet(Broadcast, h.options.MAC, pipeline.EtherARP, arp(arpRequest, h.options.MAC, a, openflow.MAC{}, a)))
		} else {
			all := netip.MustParseAddr("ff02::1")
			h.send(ethernet(openflow.MAC{0x33, 0x33, 0, 0, 0, 1}, h.options.MAC, pipeline.EtherIPv6, h.advertisement(a, all, 0x20)))
		}
	}
}

// SendUDP sends a datagram, after the address is resolved.
func (h *Host) SendUDP(from uint16, to netip.AddrPort, payload []byte) {
	h.n.lock()
	defer h.n.unlock()
	if src := h.Addr(to.Addr().Is6()); src.IsValid() {
		h.route(to.Addr(), udpPacket(src, to.Addr(), from, to.Port(), payload))
	}
}

// Ping sends an echo request, after the address is resolved.
func (h *Host) Ping(to netip.Addr) *Ping {
	h.n.lock()
	defer h.n.unlock()
	p := &Ping{h: h, to: to, sent: time.Now()}
	h.pings = append(h.pings, p)
	typ := uint8(echoRequest4)
	if to.Is6() {
		typ = echoRequest6
	}
	if src := h.Addr(to.Is6()); src.IsValid() {
		body := binary.BigEndian.AppendUint16(nil, uint16((len(h.pings)-1)>>16))
		body = binary.BigEndian.AppendUint16(body, uint16(len(h.pings)-1))
		h.route(to, icmpPacket(src, to, typ, 64, body))
	}
	return p
}

// RTT returns the time from Ping to the answer, with the resolution of the address, and whether there was one.
func (p *Ping) RTT() (time.Duration, bool) {
	p.h.n.lock()
	defer p.h.n.unlock()
	return p.answered.Sub(p.sent), p.answers > 0
}

// Answers returns how many answers came: more than one are copies.
func (p *Ping) Answers() int {
	p.h.n.lock()
	defer p.h.n.unlock()
	return p.answers
}

// Received returns the last frames that arrived, the oldest first.
func (h *Host) Received() []Received {
	h.n.lock()
	defer h.n.unlock()
	return slices.Clone(h.received)
}

// Count returns how many frames and bytes arrived, with those of streams.
func (h *Host) Count() openflow.Counter {
	h.n.lock()
	defer h.n.unlock()
	return h.frames.wire()
}

// Forget forgets the frames that arrived, and the addresses of neighbours.
func (h *Host) Forget() {
	h.n.lock()
	defer h.n.unlock()
	h.received = nil
	clear(h.neighbours)
	clear(h.waiting)
}

// route sends an IP packet to its destination, or to the gateway if that is not on the link.
func (h *Host) route(to netip.Addr, packet []byte) {
	next := to
	if !slices.ContainsFunc(h.options.Addrs, func(p netip.Prefix) bool { return p.Contains(to) }) {
		for _, g := range h.options.Gateways {
			if g.Is6() == to.Is6() {
				next = g
			}
		}
	}
	if m, ok := h.neighbours[next]; ok {
		h.send(ethernet(m, h.options.MAC, ethTypeOf(to), packet))
		return
	}
	r := h.waiting[next]
	if r == nil {
		r = &resolution{}
		h.waiting[next] = r
		h.resolve(next, r)
	}
	r.packets = append(r.packets, packet)
}

// resolve asks for the Ethernet address of a neighbour.
func (h *Host) resolve(a netip.Addr, r *resolution) {
	if h.waiting[a] != r {
		return
	}
	if r.tries == maxTries {
		delete(h.waiting, a)
		return
	}
	r.tries++
	src := h.Addr(a.Is6())
	if a.Is4() {
		h.send(ethernet(Broadcast, h.options.MAC, pipeline.EtherARP, arp(arpRequest, h.options.MAC, src, openflow.MAC{}, a)))
	} else {
		group, dst := solicited(a)
		body := append(make([]byte, 4), a.AsSlice()...)
		body = append(append(body, 1, 1), h.options.MAC[:]...)
		h.send(ethernet(dst, h.options.MAC, pipeline.EtherIPv6, icmpPacket(src, group, pipeline.NeighbourSolicitation, 255, body)))
	}
	h.n.after(retry, func() { h.resolve(a, r) })
}

// learn keeps the address of a neighbour, and sends what waits for it.
func (h *Host) learn(a netip.Addr, m openflow.MAC) {
	h.neighbours[a] = m
	r := h.waiting[a]
	if r == nil {
		return
	}
	delete(h.waiting, a)
	for _, p := range r.packets {
		h.send(ethernet(m, h.options.MAC, ethTypeOf(a), p))
	}
}

// advertisement is a neighbour advertisement for an address of the host (RFC 4861, section 4.4).
func (h *Host) advertisement(a, to netip.Addr, flags byte) []byte {
	body := append([]byte{flags, 0, 0, 0}, a.AsSlice()...)
	body = append(append(body, 2, 1), h.options.MAC[:]...)
	return icmpPacket(a, to, pipeline.NeighbourAdvertisement, 255, body)
}

// owns reports whether an address is the host's.
func (h *Host) owns(a netip.Addr) bool {
	return slices.ContainsFunc(h.options.Addrs, func(p netip.Prefix) bool { return p.Addr() == a })
}

package fabric

import (
	"cmp"
	"net/netip"

	"headgate.dev/headgate/unit"
)

// Parts are the objects of a network, from which New makes a Topology.
type Parts struct {
	Sites    []Site
	Switches []Switch
	Links    []Link
	Hosts    []Host
}

// Site is a place where switches are. Sites can be nested: a building of a campus.
type Site struct {
	Name string
	// Parent is the name of the site around it, empty if there is none.
	Parent string
}

// Switch is an OpenFlow switch, or a Linux router, whose identity is RouterID.
type Switch struct {
	ID DPID
	// Name is the operator's name for the switch, unique if it is not empty.
	Name string
	// Site is the name of the switch's site, empty if it has none.
	Site         string
	Capabilities Capabilities
	Ports        []Port
	// Agent is the name of the agent on a router, empty for a switch.
	Agent string
}

// Capabilities are what a switch can do, where switches differ in a way that changes its rules. The zero value is a switch
// that was not asked.
type Capabilities struct {
	// Tables is the number of flow tables, of those alone that can do what the rules need (OpenFlow 1.3.5, 7.3.1: n_tables;
	// 7.3.5.5). 0 is not known.
	Tables int
	// Entries is the number of flows for which the smallest of these tables has space (7.3.5.5: max_entries), 0 if that is
	// not known.
	Entries int
	// FastFailover is the greatest number of groups of type OFPGT_FF, which change to another port without the controller
	// (5.6.1, 7.3.5.11), 0 if there are none.
	FastFailover int
	// All and Select are those of groups of type OFPGT_ALL, whose buckets all get a packet, and OFPGT_SELECT, of which one
	// does.
	All, Select int
	// Meters is the greatest number of meters with a band that drops, 0 if there are none (7.3.5.14: max_meter), and Bands
	// how many bands one can have (max_bands).
	Meters, Bands int
	// PacketMeters reports that meters can count packets (7.3.5.14: OFPMF_PKTPS).
	PacketMeters bool
	// Senders reports that the table that lets hosts send can match the senders of ARP and of neighbour discovery (7.2.3.7:
	// OFPXMT_OFB_ARP_SPA, ARP_SHA, IPV6_ND_TARGET, IPV6_ND_SLL, IPV6_ND_TLL).
	Senders bool
	// TCPFlags reports that the table of redirection can match the flags of TCP (ONF EXT-109).
	TCPFlags bool
	// Local reports the port OFPP_LOCAL, of the network stack of the switch itself (7.2.1).
	Local bool
	// Bundles reports that several changes can be made as one (ONF EXT-230).
	Bundles bool
}

// PortState says whether a port carries traffic.
type PortState uint8

const (
	// Up: the port carries traffic.
	Up PortState = iota
	// Down: there is no carrier, or an administrator disabled the port (OFPPS_LINK_DOWN, OFPPC_PORT_DOWN).
	Down
	// Blocked: a protocol of the switch itself, such as spanning tree, stops traffic (OFPPS_BLOCKED).
	Blocked
)

// String prints up, down or blocked.
func (s PortState) String() string {
	switch s {
	case Up:
		return "up"
	case Down:
		return "down"
	}
	return "blocked"
}

// Port is a port of a switch (OpenFlow 1.3.5, 7.2.1).
type Port struct {
	No PortNo
	// Name is the switch's name for the port, unique in the switch if it is not empty.
	Name string
	// Speed is the current speed that the switch reports, 0 if it reports none.
	Speed unit.Rate
	State PortState
}

// CapacitySource says where the capacity of a link comes from.
type CapacitySource uint8

const (
	// Configured: an operator wrote the capacity.
	Configured CapacitySource = iota
	// Measured: Headgate measured less between hosts on both sides of the link.
	Measured
	// Reported: the capacity is the speed that a switch reports for its port.
	Reported
)

// String prints configured, measured or reported.
func (s CapacitySource) String() string {
	switch s {
	case Configured:
		return "configured"
	case Measured:
		return "measured"
	}
	return "reported"
}

// Capacity returns the capacity of a link, and its source: a configured one before a port's speed, and before either a measured one that is lower. Rates of 0
// are not known, and all three 0 gives 0.
func Capacity(configured, measured, reported unit.Rate) (rate unit.Rate, source CapacitySource) {
	if rate, source = configured, Configured; rate == 0 {
		rate, source = reported, Reported
	}
	if measured > 0 && (rate == 0 || measured < rate) {
		return measured, Measured
	}
	return rate, source
}

// Link is one direction of a cable between two switches.
type Link struct {
	LinkID
	// Capacity is the rate that the link can carry, of layer 2.
	Capacity unit.Rate
	Source   CapacitySource
	// Cost is 1 or more, and less is better, as in OSPF (RFC 2328, C.3). Costs of a path are added.
	Cost uint16
	// Reservable is how much of the capacity can be reserved, in percent, up to MaxReservable; 0 is all of it. Above 100 the link is over-subscribed
	// (Maximum Reservable Bandwidth, RFC 3630, section 2.5.7).
	Reservable uint16
	// Nominal is the capacity that is configured or reported where a measured one is in force, 0 where none is.
	Nominal unit.Rate
}

// SetCapacity sets Capacity, Source and Nominal. The rates are those of the function Capacity.
func (l *Link) SetCapacity(configured, measured, reported unit.Rate) {
	if l.Capacity, l.Source = Capacity(configured, measured, reported); l.Source == Measured {
		l.Nominal, _ = Capacity(configured, 0, reported)
	}
}

// MaxReservable is the most of a capacity that can be reserved, in percent: a hundred times it.
const MaxReservable = 100 * 100

// MaxReserved returns what can be reserved of the capacity.
func (l Link) MaxReserved() unit.Rate {
	if l.Reservable == 0 {
		return l.Capacity
	}
	return l.Capacity/100*unit.Rate(l.Reservable) + l.Capacity%100*unit.Rate(l.Reservable)/100
}

// Learned says how the network got to know a host.
type Learned uint8

const (
	// FromPacket: a packet of the host that is none of the others.
	FromPacket Learned = iota
	// FromARP: a request or reply of the Address Resolution Protocol (RFC 826).
	FromARP
	// FromNDP: a message of IPv6 neighbour discovery (RFC 4861).
	FromNDP
	// FromDHCP: an acknowledged lease (RFC 2131, RFC 8415).
	FromDHCP
	// FromConfiguration: an operator wrote the host. It does not expire, and does not move.
	FromConfiguration
)

// String prints packet, arp, ndp, dhcp or configured.
func (l Learned) String() string {
	switch l {
	case FromARP:
		return "arp"
	case FromNDP:
		return "ndp"
	case FromDHCP:
		return "dhcp"
	case FromConfiguration:
		return "configured"
	}
	return "packet"
}

// HostID identifies a network interface: one MAC in one VLAN. A MAC can be at different ports in different VLANs, as
// with independent VLAN learning (IEEE 802.1Q, 8.8.8).
type HostID struct {
	MAC MAC
	// VLAN is 1 to 4094, or 0 for untagged frames.
	VLAN uint16
}

// String prints 02:00:00:00:00:01, and the VLAN where there is one.
func (h HostID) String() string {
	if h.VLAN == 0 {
		return h.MAC.String()
	}
	return h.MAC.String() + " in VLAN " + PortNo(h.VLAN).String()
}

// Compare orders hosts by MAC, then by VLAN.
func (h HostID) Compare(i HostID) int {
	if c := h.MAC.Compare(i.MAC); c != 0 {
		return c
	}
	return cmp.Compare(h.VLAN, i.VLAN)
}

// Host is one network interface of a host. A machine with several interfaces is several hosts with one name.
type Host struct {
	HostID
	Name string
	// Addrs are the IPv4 and IPv6 addresses, in ascending order. In a VLAN an address belongs to one host.
	Addrs []netip.Addr
	// At is the port that the host is connected to.
	At      PortID
	Learned Learned
}

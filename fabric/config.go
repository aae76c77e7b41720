package fabric

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/unit"
)

// Config is what an operator writes of a network: which switches belong to it, and what their ports, links and hosts
// are where that is not to be learned. Each switch to which it refers is in Switches.
type Config struct {
	Name string
	// Switches may connect, and no others unless AcceptUnknown is set.
	Switches []SwitchConfig
	// AcceptUnknown accepts other switches as well: at a Listener with TLS those with a certificate of the controller's
	// authority, at one without TLS any.
	AcceptUnknown bool
	// Routers are Linux routers. Their ports are interfaces, written by name.
	Routers []RouterConfig
	Sites   []Site
	Links   []LinkConfig
	Hosts   []HostConfig
	// Listen are the addresses at which switches connect. There is at least one, unless no switch may connect.
	Listen []Listener
	// Trust are ports that lead to routers, or to switches of other networks. Any number of hosts can be there.
	Trust  []PortRef
	Relays Relays
	// ApplyMeasured puts capacities in force that were measured to be lower than what is configured or reported, down to this part of that, in percent.
	// 0 only proposes them.
	ApplyMeasured uint16
	// Measured are those that are in force. No document has them: the controller adds them.
	Measured map[LinkID]unit.Rate
	// HostsPerPort is the greatest number of hosts at each other port, 1 to MaxHostsPerPort.
	HostsPerPort int
}

const (
	// DefaultCost is the cost of a link for which none is written. If all links have it, the best path has the fewest.
	DefaultCost = 1
	// DefaultHostsPerPort is enough for a virtual machine host, and bounds what a hostile port can make the network keep.
	DefaultHostsPerPort = 64
	// MaxHostsPerPort is as many hosts as a whole network is designed for.
	MaxHostsPerPort = 10_000
	// ListenPort is the TCP port of OpenFlow (OpenFlow 1.3.5, 6.3; IANA service openflow).
	ListenPort = 6653
)

// SwitchConfig is a switch that an operator listed.
type SwitchConfig struct {
	ID DPID
	// Name is unique in the network, empty if the switch has none.
	Name string
	// Site is the name of the switch's site, empty if it has none.
	Site string
	// HostPorts have no links: a discovery frame that arrives there was sent, or passed on, by a host.
	HostPorts []PortName
	// LinkPorts have no hosts: what arrives there while there is no link is not evidence of one.
	LinkPorts []PortName
}

// LinkConfig is a cable that an operator wrote, both directions of it.
type LinkConfig struct {
	Ends [2]PortRef
	// Capacity is the rate of layer 2 that frames from the first end to the second can have. 0 is unknown: it is measured,
	// or the speed that the ports report.
	Capacity unit.Rate
	// Back is the same for the other direction. 0 is the same as Capacity.
	Back unit.Rate
	// Cost and Reservable are those of Link, for both directions.
	Cost       uint16
	Reservable uint16
}

// HostConfig is a host that an operator wrote. It does not expire, and does not move.
type HostConfig struct {
	HostID
	Name string
	// Addrs are all addresses of the host. If there are none, they are learned.
	Addrs []netip.Addr
	At    PortRef
	// Capacity is the rate of layer 2, in each direction, of the line from a router to the host. All hosts at one
	// interface share it. It is 0 for hosts at switches, which report it.
	Capacity unit.Rate
}

// Listener is an address at which switches connect to a controller.
type Listener struct {
	Address netip.AddrPort
	// TLS encrypts connections, and requires a certificate of the controller's authority (OpenFlow 1.3.5, 6.3).
	// Without it a switch is whichever it claims to be.
	TLS bool
}

// PortName is a port of a switch as an operator writes it: by its number or by its name, one of which is set. The
// switch reports which number has a name (OpenFlow 1.3.5, 7.2.1).
type PortName struct {
	No   PortNo
	Name string
}

var (
	// portNames are up to 15 characters, because struct ofp_port has a field of 16 bytes that ends with 0.
	portNames = regexp.MustCompile(`^[0-9A-Za-z_][!-~]{0,14}$`)
	// ranges of numbers are not names, although a switch might report such a name.
	ranges = regexp.MustCompile(`^[0-9]+-[0-9]+$`)
)

// ParsePortName parses a number, LOCAL (in any case), or a name. Digits are always a number.
func ParsePortName(s string) (PortName, error) {
	if strings.EqualFold(s, Local.String()) {
		return PortName{No: Local}, nil
	}
	if s != "" && strings.Trim(s, "0123456789") == "" {
		v, err := strconv.ParseUint(s, 10, 32)
		if no := PortNo(v); err != nil || !no.valid() {
			return PortName{}, fmt.Errorf("%s is not the number of a port: write 1 to %d, as ovs-ofctl show BRIDGE prints it, or the port's name", s, uint32(MaxPort))
		}
		return PortName{No: PortNo(v)}, nil
	}
	if !portNames.MatchString(s) || ranges.MatchString(s) {
		return PortName{}, fmt.Errorf("%q is not a port: write its number, or the name that the switch reports, which has up to 15 characters without spaces", s)
	}
	return PortName{Name: s}, nil
}

// String prints the number, LOCAL, or the name.
func (p PortName) String() string {
	if p.Name != "" {
		return p.Name
	}
	return p.No.String()
}

func (p PortName) valid() bool {
	q, err := ParsePortName(p.String())
	return err == nil && q == p
}

// PortRef is a port of the network as an operator writes it.
type PortRef struct {
	Switch DPID
	Port   PortName
}

// ID returns the port, and false if it is written by a name that no switch has reported yet (Config.Bind). The
// interfaces of routers are always known.
func (p PortRef) ID() (PortID, bool) {
	if p.Switch.IsRouter() {
		return PortID{p.Switch, routerPort(p.Port.Name)}, true
	}
	return PortID{p.Switch, p.Port.No}, p.Port.Name == ""
}

// Accepts reports whether a switch may connect.
func (c Config) Accepts(id DPID) bool {
	_, listed := c.Switch(id)
	return listed || c.AcceptUnknown
}

// HasSwitches reports whether switches can connect: the network is not one of routers alone.
func (c Config) HasSwitches() bool { return len(c.Switches) > 0 || c.AcceptUnknown }

// Admit returns why a switch may not connect, nil if it may. Without a configuration (nil) every switch may that has an id.
func (c *Config) Admit(id DPID) error {
	switch {
	case id == 0:
		return errors.New("the datapath id of the switch is 0: set another one")
	case id.IsRouter():
		return fmt.Errorf("the datapath id %v of the switch is one of those that stand for routers: set one that does not begin with %04x", id, uint64(routers>>48))
	case c != nil && !c.Accepts(id):
		return fmt.Errorf("switch %v is not in the configuration of the network: add it to switches, or set unknown_switches: accept", id)
	}
	return nil
}

// Switch returns what is written of a switch.
func (c Config) Switch(id DPID) (SwitchConfig, bool) {
	i := slices.IndexFunc(c.Switches, func(s SwitchConfig) bool { return s.ID == id })
	if i < 0 {
		return SwitchConfig{}, false
	}
	return c.Switches[i], true
}

// Label prints the switch's name, or its datapath id if it has none.
func (s SwitchConfig) Label() string {
	if s.Name != "" {
		return s.Name
	}
	return s.ID.String()
}

// PortLabel prints a port as it is written: s1/3, s1/eth3 or r1/eth0.
func (c Config) PortLabel(p PortRef) string {
	s, listed := c.Switch(p.Switch)
	if r, ok := c.Router(p.Switch); ok {
		s.Name = r.Name
	} else if !listed {
		s.ID = p.Switch
	}
	return s.Label() + "/" + p.Port.String()
}

// ID returns the link's direction from the first end to the second, and false if a port is written by a name that no
// switch has reported yet.
func (l LinkConfig) ID() (LinkID, bool) {
	from, known := l.Ends[0].ID()
	to, also := l.Ends[1].ID()
	return LinkID{from, to}, known && also
}

// Host returns the host, and false if its port is written by a name that no switch has reported yet.
func (h HostConfig) Host() (Host, bool) {
	at, known := h.At.ID()
	return Host{HostID: h.HostID, Name: h.Name, Addrs: h.Addrs, At: at, Learned: FromConfiguration}, known
}

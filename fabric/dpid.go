package fabric

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// DPID is the datapath id of a switch (OpenFlow 1.3.5, 7.3.1): 64 bits that identify it in its network. The lower 48
// bits are usually a MAC address.
type DPID uint64

// ParseDPID parses 16 hexadecimal digits, as ovs-vsctl(8) prints datapath_id, with or without a colon after each two:
// 0000000000000001 or 00:00:00:00:00:00:00:01. 0 is an error, because no switch may have it
// (ovs-vswitchd.conf.db(5), other_config:datapath-id).
func ParseDPID(s string) (DPID, error) {
	digits := s
	if strings.Count(s, ":") == 7 {
		pairs := strings.Split(s, ":")
		for _, p := range pairs {
			if len(p) != 2 {
				return 0, dpidError(s)
			}
		}
		digits = strings.Join(pairs, "")
	}
	v, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || len(digits) != 16 {
		return 0, dpidError(s)
	}
	if v == 0 {
		return 0, fmt.Errorf("%q is not a datapath id: no switch may have 0; set another with ovs-vsctl set bridge NAME other-config:datapath-id=0000000000000001", s)
	}
	return DPID(v), nil
}

func dpidError(s string) error {
	return fmt.Errorf("%q is not a datapath id: write 16 hexadecimal digits, for example \"0000000000000001\" or \"00:00:00:00:00:00:00:01\"", s)
}

// String prints 16 hexadecimal digits.
func (d DPID) String() string { return fmt.Sprintf("%016x", uint64(d)) }

// Colons prints 16 hexadecimal digits with a colon after each two.
func (d DPID) Colons() string {
	s := d.String()
	pairs := make([]string, 8)
	for i := range pairs {
		pairs[i] = s[2*i : 2*i+2]
	}
	return strings.Join(pairs, ":")
}

// MarshalText prints as String does.
func (d DPID) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText parses as ParseDPID does.
func (d *DPID) UnmarshalText(b []byte) (err error) { *d, err = ParseDPID(string(b)); return err }

// PortNo is the number of a port of a switch (OpenFlow 1.3.5, 7.2.1): 1 to MaxPort, or Local. 0 is no port.
type PortNo uint32

const (
	// MaxPort is the highest number of a physical or logical port, OFPP_MAX.
	MaxPort PortNo = 0xffffff00
	// Local is the port of the switch's own network stack, OFPP_LOCAL. Programs on a switch send and receive there.
	Local PortNo = 0xfffffffe
)

func (n PortNo) valid() bool { return n >= 1 && n <= MaxPort || n == Local }

// String prints the number, or LOCAL.
func (n PortNo) String() string {
	if n == Local {
		return "LOCAL"
	}
	return strconv.FormatUint(uint64(n), 10)
}

// PortID is a port of the network.
type PortID struct {
	Switch DPID
	Port   PortNo
}

// String prints 0000000000000001/3.
func (p PortID) String() string { return p.Switch.String() + "/" + p.Port.String() }

// Compare orders ports by switch and number.
func (p PortID) Compare(q PortID) int {
	if p.Switch != q.Switch {
		return cmp.Compare(p.Switch, q.Switch)
	}
	return cmp.Compare(p.Port, q.Port)
}

// LinkID is one direction of a cable: frames that leave From arrive at To.
type LinkID struct{ From, To PortID }

// Other is the port at the other end of a link of a switch.
func (l LinkID) Other(id DPID) PortID {
	if l.From.Switch == id {
		return l.To
	}
	return l.From
}

// Reverse is the other direction of the cable.
func (l LinkID) Reverse() LinkID { return LinkID{l.To, l.From} }

// String prints 0000000000000001/3 -> 0000000000000002/1.
func (l LinkID) String() string { return l.From.String() + " -> " + l.To.String() }

// Compare orders links by From, then by To.
func (l LinkID) Compare(m LinkID) int {
	if c := l.From.Compare(m.From); c != 0 {
		return c
	}
	return l.To.Compare(m.To)
}
